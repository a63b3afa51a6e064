"""``/v1/auth/2fa/policy``, ``/v1/auth/2fa/compliance``."""

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from common.api.viewsets import PlatformViewSet
from common.errors import Forbidden
from common.permissions import MEMBER, USER, needs, require
from environments.models import Organization
from twofactor.audit_tags import TwoFactorTag
from twofactor.errors import PolicyLocksOut
from twofactor.policy import organization_policy
from twofactor.policy.serializers import (
    ComplianceQuerySerializer,
    ComplianceSerializer,
    PolicyPreviewSerializer,
    PolicySerializer,
    PolicyUpdateSerializer,
)


class PolicyViewSet(PlatformViewSet):
    """The organization's policy on second factors, and its members' compliance."""

    tag = "Organization policy"
    access = {
        "policy": MEMBER.always(),
        "update_policy": needs("policy", "update").fresh(),
        "preview": needs("policy", "update"),
        "compliance": MEMBER.always(),
    }
    errors = {
        "update_policy": (PolicyLocksOut,),
        "preview": (PolicyLocksOut,),
        "compliance": (Forbidden,),
    }
    request_serializers = {
        "update_policy": PolicyUpdateSerializer,
        "preview": PolicyUpdateSerializer,
    }
    query_serializers = {"compliance": ComplianceQuerySerializer}
    versions = {"policy": "update_policy"}
    response_serializers = {
        "policy": PolicySerializer,
        "update_policy": PolicySerializer,
        "preview": PolicyPreviewSerializer,
        "compliance": ComplianceSerializer,
    }

    @extend_schema(summary="Read the 2FA policy")
    @action(detail=False)
    def policy(self, request: Request) -> Response:
        """Return the policy; every member may read it."""
        organization = Organization.objects.get(pk=self.principal.organization_id)
        return self.respond(organization_policy.describe(organization))

    @extend_schema(summary="Update the 2FA policy")
    @policy.mapping.put
    def update_policy(self, request: Request) -> Response:
        """Change the policy; it also applies to existing sessions."""
        body = self.read()
        with transaction.atomic():
            organization = organization_policy.update(
                self.principal, body, now=timezone.now(), check=self.require_match
            )
            trail.record_request(self.platform_request, TwoFactorTag.POLICY_UPDATE, **body)
        return self.respond(organization_policy.describe(organization))

    @extend_schema(summary="Preview a change of the 2FA policy")
    @action(detail=False, methods=["post"], url_path="policy/preview")
    def preview(self, request: Request) -> Response:
        """Return the members whom a change would restrict, and from when; nothing is saved."""
        body = self.read()
        found = organization_policy.preview(
            self.principal.organization_id, body, now=timezone.now()
        )
        return self.respond(found)

    @extend_schema(summary="Compliance")
    @action(detail=False)
    def compliance(self, request: Request) -> Response:
        """Return whether the caller complies; with `scope=organization` (admins), who does not."""
        who = self.principal
        if self.read_query()["scope"] == "organization":
            require(needs("policy", "update"), who)
            return self.respond(organization_policy.compliance_of_organization(who.organization_id))
        require(USER.always(), who)
        return self.respond(organization_policy.compliance_of(who.own_id, now=timezone.now()))
