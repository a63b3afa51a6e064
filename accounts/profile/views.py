"""One's own sessions, password and e-mail, below ``/v1/auth``."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.profile import email_change, mailbox, password
from accounts.profile.mailbox import State
from accounts.profile.serializers import (
    EmailCancelSerializer,
    EmailChangeSerializer,
    EmailCodeSerializer,
    EmailSerializer,
    PasswordChangeSerializer,
    PasswordStateSerializer,
    SessionsEndedSerializer,
    SessionSerializer,
)
from accounts.sessions import own_sessions
from accounts.signin import signup
from platform_site.lib.api import ApiView, CursorPages
from platform_site.lib.permissions import PUBLIC, USER


class SessionsView(ApiView):
    """The caller's sessions."""

    # Ending what is open only ever makes an account safer, so that it takes no fresh proof.
    access = {"GET": USER.always(), "DELETE": USER.always()}

    @extend_schema(
        operation_id="sessions_list",
        summary="List one's sessions",
        parameters=CursorPages.parameters(),
        responses=CursorPages.schema_of(SessionSerializer),
    )
    def get(self, request: Request) -> Response:
        """List the sessions that can still be used, the newest first."""
        rows = own_sessions.live_ones(self.principal, now=timezone.now())
        return CursorPages.respond(
            self,
            rows.select_related("environment"),
            serializer=SessionSerializer,
            context={"current_id": self.principal.session_id},
        )

    @extend_schema(
        operation_id="sessions_end_others",
        summary="End all other sessions",
        responses={200: SessionsEndedSerializer},
    )
    def delete(self, request: Request) -> Response:
        """End every session but the one that asks, at once for access tokens too."""
        ended = own_sessions.end_others(self.platform_request, self.principal, now=timezone.now())
        return Response({"ended": ended})


class SessionView(ApiView):
    """One session of the caller's."""

    access = {"DELETE": USER.always()}

    @extend_schema(summary="End a session", responses={204: None})
    def delete(self, request: Request, session_id: str) -> Response:
        """End a session, at once for its access tokens too."""
        own_sessions.end(self.platform_request, self.principal, session_id, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class PasswordView(ApiView):
    """The caller's password."""

    access = {"GET": USER, "POST": USER.fresh()}

    @extend_schema(summary="Say whether there is a password", responses=PasswordStateSerializer)
    def get(self, request: Request) -> Response:
        """Say whether a change of password has to name the present one."""
        return Response({"has_password": password.has_one(self.principal)})

    @extend_schema(
        summary="Change the password",
        request=PasswordChangeSerializer,
        responses=SessionsEndedSerializer,
    )
    def post(self, request: Request) -> Response:
        """Set a new password; trusted devices and, if not said otherwise, other sessions end."""
        body = self.read(PasswordChangeSerializer)
        ended = password.change(
            self.platform_request,
            self.principal,
            current_password=body["current_password"],
            password=body["password"],
            ends_others=body["end_other_sessions"],
            now=timezone.now(),
        )
        return Response({"ended": ended})


def _shown(state: State) -> dict[str, Any]:
    proof = state.pending
    return {
        "email": state.user.email or None,
        "email_verified": state.user.email_verified_at is not None,
        "pending_email": proof.email if proof and proof.fingerprint else None,
        "code_expires_at": int(proof.expires_at.timestamp()) if proof else None,
    }


class EmailView(ApiView):
    """The caller's e-mail address."""

    access = {"GET": USER.without_email()}

    @extend_schema(summary="Read one's e-mail address", responses=EmailSerializer)
    def get(self, request: Request) -> Response:
        """Say whether the address is verified, and whether another one waits to be."""
        return Response(_shown(mailbox.state_of(self.principal.own_id, now=timezone.now())))


class EmailChangeView(ApiView):
    """A change of the caller's e-mail address."""

    access = {"POST": USER.fresh().without_email(), "DELETE": USER.without_email()}

    @extend_schema(
        summary="Change the e-mail address",
        request=EmailChangeSerializer,
        responses={202: EmailSerializer},
    )
    def post(self, request: Request) -> Response:
        """Mail a code to the new address; it is used from when the code is given on.

        The present address is told, and can cancel. The answer is the same whether or not the new
        address has an account: only its mailbox is told.
        """
        body = self.read(EmailChangeSerializer)
        state = email_change.begin(
            self.platform_request,
            self.principal.own_id,
            signup.canonical(body["email"]),
            now=timezone.now(),
        )
        return Response(_shown(state), status=status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Give up a change of e-mail address", responses={204: None})
    def delete(self, request: Request) -> Response:
        """Stay with the present address; the code that was mailed is void."""
        email_change.give_up(self.platform_request, self.principal.own_id, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class EmailVerifyView(ApiView):
    """Prove an e-mail address."""

    access = {"POST": USER.without_email()}

    @extend_schema(
        summary="Verify an e-mail address", request=EmailCodeSerializer, responses=EmailSerializer
    )
    def post(self, request: Request) -> Response:
        """Give the code that was mailed after sign-up, or to the address to change to."""
        body = self.read(EmailCodeSerializer)
        state = mailbox.verify(
            self.platform_request, self.principal.own_id, body["code"], now=timezone.now()
        )
        return Response(_shown(state))


class EmailResendView(ApiView):
    """Another mail with a code."""

    access = {"POST": USER.without_email()}

    @extend_schema(summary="Mail a new code", request=None, responses={202: EmailSerializer})
    def post(self, request: Request) -> Response:
        """Mail a new code to the address that waits to be verified, at most once a minute."""
        state = mailbox.resend(self.principal.own_id, now=timezone.now())
        return Response(_shown(state), status=status.HTTP_202_ACCEPTED)


class EmailCancelView(ApiView):
    """Cancel a change of address from outside."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Cancel a change of e-mail address",
        request=EmailCancelSerializer,
        responses={204: None},
    )
    def post(self, request: Request) -> Response:
        """End a change with the token that was mailed to the present address."""
        body = self.read(EmailCancelSerializer)
        email_change.cancel(self.platform_request, body["token"], now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
