"""``/v1/auth/2fa/webauthn/*`` and ``/v1/auth/passkey/*``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.serializers import SIGN_IN_RESULT
from platform_site.lib.api import NO_STORE, ApiView, CursorPages
from platform_site.lib.permissions import PUBLIC, USER
from twofactor.webauthn import enrolment, passkeys, removal, sign_in
from twofactor.webauthn.serializers import (
    PasskeyRegisterAnswerSerializer,
    PasskeyRegisteredSerializer,
    PasskeyRegisterFinishSerializer,
    PasskeyRegisterSerializer,
    PasskeySerializer,
    PasskeySignInFinishSerializer,
    PasskeySignInStartAnswerSerializer,
    PasskeySignInStartSerializer,
)

# The largest attestation in base64, and room for what browsers repeat of it.
CREDENTIAL_LIMIT_BYTES = 49152


class RegisterView(ApiView):
    """Begin to register a passkey."""

    access = {"POST": USER.or_pending("enrol").fresh()}

    @extend_schema(
        summary="Start WebAuthn registration",
        request=PasskeyRegisterSerializer,
        responses=PasskeyRegisterAnswerSerializer,
    )
    def post(self, request: Request) -> Response:
        """Give the creation options; the session is good for five minutes and one answer."""
        body = self.read(PasskeyRegisterSerializer)
        answer = enrolment.start(self.principal, **body, now=timezone.now())
        return Response(answer, headers=NO_STORE)


class RegisterFinishView(ApiView):
    """Register a passkey."""

    access = {"POST": USER.or_pending("enrol").fresh()}
    body_limit_bytes = CREDENTIAL_LIMIT_BYTES

    @extend_schema(
        summary="Finish WebAuthn registration",
        request=PasskeyRegisterFinishSerializer,
        responses=PasskeyRegisteredSerializer,
    )
    def post(self, request: Request) -> Response:
        """Keep the passkey that the browser made."""
        body = self.read(PasskeyRegisterFinishSerializer)
        answer = enrolment.finish(
            self.platform_request,
            self.principal,
            session_id=body["session_id"],
            credential=body["credential"],
            name=body["credential_name"],
            now=timezone.now(),
        )
        return Response(answer, headers=NO_STORE)


class PasskeysView(ApiView):
    """The caller's passkeys."""

    access = {"GET": USER.always()}

    @extend_schema(
        operation_id="passkeys_list",
        summary="List passkeys",
        parameters=CursorPages.parameters(),
        responses=CursorPages.schema_of(PasskeySerializer),
    )
    def get(self, request: Request) -> Response:
        """List the caller's passkeys."""
        rows = passkeys.passkeys_of(self.principal.own_id)
        return CursorPages.respond(self, rows, serializer=PasskeySerializer)


class PasskeyView(ApiView):
    """One passkey of the caller's."""

    access = {"DELETE": USER.fresh().always()}

    @extend_schema(summary="Remove a passkey", responses={204: None})
    def delete(self, request: Request, credential_id: str) -> Response:
        """Remove a passkey; with the last one the method goes, and trusted devices in any case."""
        removal.remove(self.platform_request, self.principal, credential_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SignInStartView(ApiView):
    """Begin to sign in with a passkey."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Start signing in with a passkey",
        request=PasskeySignInStartSerializer,
        responses=PasskeySignInStartAnswerSerializer,
    )
    def post(self, request: Request) -> Response:
        """Give the request options, the same for everyone; good for five minutes and one answer."""
        body = self.read(PasskeySignInStartSerializer)
        answer = sign_in.start(self.platform_request, **body, now=timezone.now())
        return Response(answer, headers=NO_STORE)


class SignInFinishView(ApiView):
    """Sign in with a passkey."""

    access = {"POST": PUBLIC}
    body_limit_bytes = CREDENTIAL_LIMIT_BYTES

    @extend_schema(
        summary="Finish signing in with a passkey",
        request=PasskeySignInFinishSerializer,
        responses=SIGN_IN_RESULT,
    )
    def post(self, request: Request) -> Response:
        """Open a session; with user verification a passkey counts as both factors."""
        body = self.read(PasskeySignInFinishSerializer)
        done = sign_in.finish(self.platform_request, **body, now=timezone.now())
        return Response(done.answer, headers=NO_STORE)
