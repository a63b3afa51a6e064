"""``/v1/domains``."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import TooManyAttempts
from common.api.views import StrictSerializer
from common.api.viewsets import ListAction
from common.errors import DnsUnavailable
from common.openapi import shapes
from common.permissions import needs
from oauth.domains import verification
from oauth.errors import DomainTaken, DomainUnproven, TooManyDomains
from oauth.models import Domain


class ClaimSerializer(StrictSerializer):
    """A domain, and the role of users who will join by it; admin is not available."""

    domain = serializers.CharField(max_length=254)
    role = serializers.ChoiceField(choices=["operator", "reader"], required=False, default="reader")


class DomainSerializer(serializers.ModelSerializer[Domain]):
    """A claimed domain; ``record`` verifies it, and has to remain in DNS."""

    status = serializers.SerializerMethodField()
    record = serializers.SerializerMethodField()

    class Meta:
        """The fields that an admin can read."""

        model = Domain
        fields = ("id", "domain", "role", "status", "record", "created_at", "verified_at")
        read_only_fields = fields

    def get_status(self, domain: Domain) -> str:
        """Return ``verified`` or ``pending``."""
        return "verified" if domain.verified_at is not None else "pending"

    def get_record(self, domain: Domain) -> dict[str, str]:
        """Return the DNS record to add."""
        return verification.record_of(domain)


@extend_schema_view(
    list=extend_schema(
        summary="List domains", description="List the domains, claimed and verified."
    )
)
class DomainViewSet(ListAction):
    """The domains of the caller's organization."""

    tag = "Domains"
    access = {
        "list": needs("members", "read"),
        "create": needs("members", "create").fresh(),
        "destroy": needs("members", "delete"),
        "verify": needs("members", "update"),
    }
    errors = {
        "create": (DomainTaken, TooManyDomains, DnsUnavailable),
        "verify": (DomainTaken, DomainUnproven, TooManyAttempts, DnsUnavailable),
    }
    serializer_class = DomainSerializer
    request_serializers = {"create": ClaimSerializer}
    lookup_url_kwarg = "domain_id"
    path_schemas = {"domain_id": shapes.UUID}

    def get_queryset(self) -> QuerySet[Domain]:
        """Return the organization's domains."""
        return verification.domains_of(self.principal.organization_id)

    @extend_schema(summary="Claim a domain")
    def create(self, request: Request) -> Response:
        """Claim a domain; add `record` to its DNS, then verify it."""
        body = self.read()
        claimed = verification.claim(
            self.platform_request,
            self.principal,
            body["domain"],
            role=body["role"],
            now=timezone.now(),
        )
        return self.respond(claimed)

    @extend_schema(summary="Remove a domain")
    def destroy(self, request: Request, domain_id: str) -> Response:
        """Remove the domain: no further users join by it, and users who have joined stay."""
        verification.remove(self.platform_request, self.get_object())
        return self.no_content()

    @extend_schema(summary="Verify a domain", request=None)
    @action(detail=True, methods=["post"])
    def verify(self, request: Request, domain_id: str) -> Response:
        """Look up the DNS record; then Google accounts of the domain join when they sign in."""
        domain = self.get_object()
        return self.respond(verification.verify(self.platform_request, domain, now=timezone.now()))
