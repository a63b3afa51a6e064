"""``/v1/auth/2fa/webauthn/*`` and ``/v1/auth/passkey/*``."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import TooManyAttempts
from accounts.serializers import SIGN_IN_RESULT
from common.api.views import NO_STORE
from common.api.viewsets import ListAction, PlatformViewSet
from common.openapi import shapes
from common.permissions import PUBLIC, USER
from environments.errors import EnvironmentNotFound
from oauth.errors import LastLoginMethod
from twofactor.errors import (
    ChallengeGone,
    ChannelUnavailable,
    CredentialTaken,
    EnrolmentGone,
    FactorNotAllowed,
    MalformedCredential,
    PasskeyNotFound,
    PasskeyRejected,
    RequiredByPolicy,
    TooManyPasskeys,
)
from twofactor.models import Passkey
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

# The largest attestation in base64, plus fields in which browsers repeat parts of it.
CREDENTIAL_LIMIT_BYTES = 49152


class PasskeyRegistrationViewSet(PlatformViewSet):
    """Registration of passkeys."""

    tag = "Second factor"
    access = {
        "register": USER.or_pending("enrol").fresh(),
        "finish": USER.or_pending("enrol").fresh(),
    }
    errors = {
        "register": (FactorNotAllowed, TooManyPasskeys, ChannelUnavailable),
        "finish": (
            MalformedCredential,
            FactorNotAllowed,
            CredentialTaken,
            TooManyPasskeys,
            EnrolmentGone,
        ),
    }
    body_limit_bytes = CREDENTIAL_LIMIT_BYTES
    request_serializers = {
        "register": PasskeyRegisterSerializer,
        "finish": PasskeyRegisterFinishSerializer,
    }
    response_serializers = {
        "register": PasskeyRegisterAnswerSerializer,
        "finish": PasskeyRegisteredSerializer,
    }

    @extend_schema(summary="Start WebAuthn registration")
    @action(detail=False, methods=["post"])
    def register(self, request: Request) -> Response:
        """Return the creation options; the session is valid for five minutes and one answer."""
        answer = enrolment.start(self.principal, **self.read(), now=timezone.now())
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Finish WebAuthn registration")
    @action(detail=False, methods=["post"], url_path="register/finish")
    def finish(self, request: Request) -> Response:
        """Store the passkey that the browser created."""
        body = self.read()
        answer = enrolment.finish(
            self.platform_request,
            self.principal,
            session_id=body["session_id"],
            credential=body["credential"],
            name=body["credential_name"],
            now=timezone.now(),
        )
        return self.respond(answer, headers=NO_STORE)


@extend_schema_view(
    list=extend_schema(
        operation_id="passkeys_list",
        summary="List passkeys",
        description="List the caller's passkeys.",
    )
)
class PasskeyViewSet(ListAction):
    """The caller's passkeys."""

    tag = "Second factor"
    access = {"list": USER.always(), "destroy": USER.fresh().always()}
    errors = {"destroy": (PasskeyNotFound, LastLoginMethod, RequiredByPolicy)}
    serializer_class = PasskeySerializer
    lookup_url_kwarg = "credential_id"
    path_schemas = {"credential_id": shapes.BASE64URL}

    def get_queryset(self) -> QuerySet[Passkey]:
        """Return the caller's passkeys."""
        return passkeys.passkeys_of(self.principal.own_id)

    @extend_schema(summary="Remove a passkey")
    def destroy(self, request: Request, credential_id: str) -> Response:
        """Remove a passkey and the trusted devices; removing the last one removes the method."""
        removal.remove(self.platform_request, self.principal, credential_id)
        return self.no_content()


class PasskeySignInViewSet(PlatformViewSet):
    """Sign-in with a passkey."""

    tag = "Sign in"
    access = {"start": PUBLIC, "finish": PUBLIC}
    errors = {
        "start": (TooManyAttempts, ChannelUnavailable),
        "finish": (
            MalformedCredential,
            PasskeyRejected,
            EnvironmentNotFound,
            ChallengeGone,
            TooManyAttempts,
            ChannelUnavailable,
        ),
    }
    body_limit_bytes = CREDENTIAL_LIMIT_BYTES
    request_serializers = {
        "start": PasskeySignInStartSerializer,
        "finish": PasskeySignInFinishSerializer,
    }
    response_serializers = {
        "start": PasskeySignInStartAnswerSerializer,
        "finish": SIGN_IN_RESULT,
    }

    @extend_schema(summary="Start signing in with a passkey")
    @action(detail=False, methods=["post"])
    def start(self, request: Request) -> Response:
        """Return the request options, the same for everyone; valid for 5 minutes and one answer."""
        answer = sign_in.start(self.platform_request, **self.read(), now=timezone.now())
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Finish signing in with a passkey")
    @action(detail=False, methods=["post"])
    def finish(self, request: Request) -> Response:
        """Open a session; a passkey with user verification counts as both factors."""
        done = sign_in.finish(self.platform_request, **self.read(), now=timezone.now())
        return self.respond(done.answer, headers=NO_STORE)
