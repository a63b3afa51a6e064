"""``/v1/auth/password``, ``/v1/auth/email``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import (
    EmailChangeGone,
    EmailCodeGone,
    EmailCodeRejected,
    EmailTaken,
    EmailVerified,
    HashingBusy,
    InvalidCredentials,
    MailedTooOften,
    SessionRevoked,
    TokenSuperseded,
    TooManyAttempts,
)
from accounts.profile import email_change, mailbox, password
from accounts.profile.serializers import (
    EmailCancelSerializer,
    EmailChangeSerializer,
    EmailCodeSerializer,
    EmailSerializer,
    PasswordChangeSerializer,
    PasswordStateSerializer,
)
from accounts.serializers import SessionsEndedSerializer
from accounts.signin import signup
from common.api.viewsets import PlatformViewSet
from common.permissions import PUBLIC, USER


class ProfileViewSet(PlatformViewSet):
    """The caller's own password and e-mail address."""

    tag = "Account"
    access = {
        "password_state": USER,
        "change_password": USER.fresh(),
        "email_state": USER.without_email(),
        "change_email": USER.fresh().without_email(),
        "give_up_email_change": USER.without_email(),
        "verify_email": USER.without_email(),
        "resend_email_code": USER.without_email(),
        "cancel_email_change": PUBLIC,
    }
    errors = {
        "change_password": (InvalidCredentials, TooManyAttempts, HashingBusy),
        "change_email": (MailedTooOften,),
        "give_up_email_change": (EmailChangeGone,),
        "verify_email": (
            EmailCodeRejected,
            SessionRevoked,
            TokenSuperseded,
            EmailTaken,
            EmailChangeGone,
            EmailCodeGone,
            MailedTooOften,
        ),
        "resend_email_code": (EmailVerified, EmailChangeGone, MailedTooOften),
        "cancel_email_change": (EmailChangeGone,),
    }
    serializer_class = EmailSerializer
    request_serializers = {
        "change_password": PasswordChangeSerializer,
        "change_email": EmailChangeSerializer,
        "verify_email": EmailCodeSerializer,
        "cancel_email_change": EmailCancelSerializer,
    }
    response_serializers = {
        "password_state": PasswordStateSerializer,
        "change_password": SessionsEndedSerializer,
        "give_up_email_change": None,
        "cancel_email_change": None,
    }
    success_statuses = {
        "change_email": status.HTTP_202_ACCEPTED,
        "resend_email_code": status.HTTP_202_ACCEPTED,
    }

    @extend_schema(summary="Say whether there is a password")
    @action(detail=False, url_path="password")
    def password_state(self, request: Request) -> Response:
        """Return whether a change of password requires the present one."""
        return self.respond({"has_password": password.has_one(self.principal)})

    @extend_schema(summary="Change the password")
    @password_state.mapping.post
    def change_password(self, request: Request) -> Response:
        """Set a new password; trusted devices and, by default, other sessions end."""
        body = self.read()
        ended = password.change(
            self.platform_request,
            self.principal,
            current_password=body["current_password"],
            password=body["password"],
            ends_others=body["end_other_sessions"],
            now=timezone.now(),
        )
        return self.respond({"ended": ended})

    @extend_schema(summary="Read the caller's e-mail address")
    @action(detail=False, url_path="email")
    def email_state(self, request: Request) -> Response:
        """Return whether the address is verified, and whether a change of address is pending."""
        return self.respond(mailbox.state_of(self.principal.own_id, now=timezone.now()))

    @extend_schema(summary="Change the e-mail address")
    @action(detail=False, methods=["post"], url_path="email/change")
    def change_email(self, request: Request) -> Response:
        """Mail a code to the new address, which is used once the code is given.

        The present address gets a notice with a link to cancel. The response is the same whether or
        not the new address has an account; only the mail differs.
        """
        state = email_change.begin(
            self.platform_request,
            self.principal.own_id,
            signup.canonical(self.read()["email"]),
            now=timezone.now(),
        )
        return self.respond(state)

    @extend_schema(summary="Give up a change of e-mail address")
    @change_email.mapping.delete
    def give_up_email_change(self, request: Request) -> Response:
        """Cancel the change of address; the mailed code becomes invalid."""
        email_change.give_up(self.platform_request, self.principal.own_id, now=timezone.now())
        return self.no_content()

    @extend_schema(summary="Verify an e-mail address")
    @action(detail=False, methods=["post"], url_path="email/verify")
    def verify_email(self, request: Request) -> Response:
        """Verify the address with the code mailed after sign-up or for a change of address."""
        code = self.read()["code"]
        state = mailbox.verify(
            self.platform_request, self.principal.own_id, code, now=timezone.now()
        )
        return self.respond(state)

    @extend_schema(summary="Mail a new code")
    @action(detail=False, methods=["post"], url_path="email/resend")
    def resend_email_code(self, request: Request) -> Response:
        """Mail a new code to the address to verify, at most once a minute."""
        return self.respond(mailbox.resend(self.principal.own_id, now=timezone.now()))

    @extend_schema(summary="Cancel a change of e-mail address")
    @action(detail=False, methods=["post"], url_path="email/cancel")
    def cancel_email_change(self, request: Request) -> Response:
        """Cancel a change with the token that was mailed to the present address."""
        token = self.read()["token"]
        email_change.cancel(self.platform_request, token, now=timezone.now())
        return self.no_content()
