"""``/v1/auth/2fa/*`` but for the set-up of each factor, and ``/v1/auth/reauthenticate``."""

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit import audit
from accounts.models import Session
from environments.models import MFA_METHODS, Organization
from platform_site.lib.api import NO_STORE, ApiView, CursorPages
from platform_site.lib.errors import InvalidRequest, NotFound
from platform_site.lib.permissions import MEMBER, PUBLIC, USER, needs, require
from twofactor import registry
from twofactor.challenges import challenges, reauthentication
from twofactor.challenges.step_up import MAX_AGE_S
from twofactor.factors import factors
from twofactor.factors.contract import ChallengeAnswer
from twofactor.models import TrustedDevice
from twofactor.policy import policy
from twofactor.serializers import (
    CHALLENGE_RESULT,
    ChallengeSerializer,
    ChallengeVerifySerializer,
    ComplianceSerializer,
    DefaultMethodSerializer,
    PolicySerializer,
    PolicyUpdateSerializer,
    ReauthenticateSerializer,
    StatusSerializer,
    TrustedDeviceSerializer,
)
from twofactor.trusted_devices import devices

CHALLENGE_METHODS = registry.challenge_names(MFA_METHODS)


class StatusView(ApiView):
    """What the caller has."""

    access = {"GET": USER.or_pending("challenge", "enrol").without_email()}

    @extend_schema(summary="2FA status", responses=StatusSerializer)
    def get(self, request: Request) -> Response:
        """Give the caller's methods, the default one and the number of backup codes left."""
        return Response(factors.status_of(self.principal), headers=NO_STORE)


class ChallengeView(ApiView):
    """Ask for a challenge."""

    access = {"GET": USER.or_pending("challenge").without_email()}

    @extend_schema(
        summary="Create a challenge",
        parameters=[OpenApiParameter("method", str, enum=CHALLENGE_METHODS)],
        responses=ChallengeSerializer,
    )
    def get(self, request: Request) -> Response:
        """Give a challenge for a sign-in (`mfa_token`) or, for step-up, for the session.

        Asked again within 30 seconds it is the same one, and nothing is sent again.
        """
        wanted = request.query_params.get("method", "")
        if wanted and wanted not in CHALLENGE_METHODS:
            raise InvalidRequest.for_field("method", f"One of {', '.join(CHALLENGE_METHODS)}.")
        answer = challenges.create(self.principal, wanted, now=timezone.now())
        return Response(answer, headers=NO_STORE)


class ChallengeVerifyView(ApiView):
    """Answer a challenge; its id is the permission, so no header is needed."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Verify a challenge",
        request=ChallengeVerifySerializer,
        responses=CHALLENGE_RESULT,
    )
    def post(self, request: Request, challenge_id: str) -> Response:
        """Exchange the answer for the token pair, or raise the session's assurance."""
        body = self.read(ChallengeVerifySerializer)
        now = timezone.now()
        done = challenges.verify(
            self.platform_request, challenge_id, ChallengeAnswer(**body), now=now
        )
        if isinstance(done, Session):
            answer = {
                "status": "verified",
                "aal": done.aal,
                "valid_until": int(now.timestamp()) + MAX_AGE_S,
            }
            return Response(answer, headers=NO_STORE)
        return Response(done.answer, headers=NO_STORE)


class MethodView(ApiView):
    """One method of the caller's."""

    access = {"DELETE": USER.fresh().always()}

    @extend_schema(summary="Disable a method", responses={204: None})
    def delete(self, request: Request, method: str) -> Response:
        """Remove a method; trusted devices end with it."""
        if method not in MFA_METHODS:
            raise NotFound
        factors.disable(self.platform_request, self.principal, method)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DefaultMethodView(ApiView):
    """The method to offer first."""

    access = {"PUT": USER.fresh()}

    @extend_schema(
        summary="Set the default method",
        request=DefaultMethodSerializer,
        responses=StatusSerializer,
    )
    def put(self, request: Request) -> Response:
        """Choose which of the enabled methods is offered first."""
        body = self.read(DefaultMethodSerializer)
        factors.prefer(self.platform_request, self.principal, body["method"])
        return Response(factors.status_of(self.principal))


class TrustedDevicesView(ApiView):
    """The caller's trusted devices."""

    access = {"GET": USER}

    @extend_schema(
        operation_id="trusted_devices_list",
        summary="List trusted devices",
        parameters=CursorPages.parameters(),
        responses=CursorPages.schema_of(TrustedDeviceSerializer),
    )
    def get(self, request: Request) -> Response:
        """List the devices that skip the second factor at login."""
        rows = TrustedDevice.scoped.within_organization(self.principal.organization_id).filter(
            user_id=self.principal.user_id, expires_at__gt=timezone.now()
        )
        return CursorPages.respond(self, rows, serializer=TrustedDeviceSerializer)


class TrustedDeviceView(ApiView):
    """One trusted device of the caller's."""

    access = {"DELETE": USER}

    @extend_schema(summary="Remove a trusted device", responses={204: None})
    def delete(self, request: Request, device_id: str) -> Response:
        """Forget a device; its next login is asked for the second factor."""
        who = self.principal
        with transaction.atomic():
            devices.remove(who.own_id, who.organization_id, device_id)
            audit.record_request(
                self.platform_request, "api:trusted_device:delete", device=device_id
            )
        return Response(status=status.HTTP_204_NO_CONTENT)


class PolicyView(ApiView):
    """The organization's policy."""

    access = {"GET": MEMBER.always(), "PUT": needs("policy", "update").fresh()}

    @extend_schema(summary="Read the 2FA policy", responses=PolicySerializer)
    def get(self, request: Request) -> Response:
        """Give the policy; every member may read it."""
        organization = Organization.objects.get(pk=self.principal.organization_id)
        return Response(policy.describe(organization))

    @extend_schema(
        summary="Update the 2FA policy", request=PolicyUpdateSerializer, responses=PolicySerializer
    )
    def put(self, request: Request) -> Response:
        """Change the policy; it holds on live sessions, too."""
        body = self.read(PolicyUpdateSerializer)
        with transaction.atomic():
            organization = policy.update(self.principal, body, now=timezone.now())
            audit.record_request(self.platform_request, "api:policy:update", **body)
        return Response(policy.describe(organization))


class ComplianceView(ApiView):
    """Compliance with the policy."""

    access = {"GET": MEMBER.always()}

    @extend_schema(
        summary="Compliance",
        parameters=[OpenApiParameter("scope", str, enum=["user", "organization"])],
        responses=ComplianceSerializer,
    )
    def get(self, request: Request) -> Response:
        """Say where the caller stands; with `scope=organization` (admins), who is missing."""
        who = self.principal
        scope = request.query_params.get("scope", "user")
        if scope == "organization":
            require(needs("policy", "update"), who)
            return Response(policy.compliance_of_organization(who.organization_id))
        if scope != "user":
            raise InvalidRequest.for_field("scope", "One of user, organization.")
        require(USER.always(), who)
        return Response(policy.compliance_of(who.own_id, now=timezone.now()))


class ReauthenticateView(ApiView):
    """The password, once more."""

    access = {"POST": USER.always()}

    @extend_schema(
        summary="Reauthenticate", request=ReauthenticateSerializer, responses={204: None}
    )
    def post(self, request: Request) -> Response:
        """Prove the password again, for what takes a recent proof where no factor is active."""
        body = self.read(ReauthenticateSerializer)
        reauthentication.by_password(
            self.platform_request, self.principal, body["password"], now=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)
