"""``/v1/domains``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.oauth.domains import verification
from accounts.oauth.domains.serializers import ClaimSerializer, DomainSerializer
from platform_site.lib.api import ApiView, CursorPages
from platform_site.lib.permissions import needs


class DomainsView(ApiView):
    """The domains of the caller's organization."""

    access = {"GET": needs("members", "read"), "POST": needs("members", "create").fresh()}

    @extend_schema(
        operation_id="domains_list",
        summary="List domains",
        parameters=CursorPages.parameters(),
        responses=CursorPages.schema_of(DomainSerializer),
    )
    def get(self, request: Request) -> Response:
        """List the domains, claimed and proven."""
        rows = verification.of(self.principal.organization_id)
        return CursorPages.respond(self, rows, serializer=DomainSerializer)

    @extend_schema(
        summary="Claim a domain", request=ClaimSerializer, responses={201: DomainSerializer}
    )
    def post(self, request: Request) -> Response:
        """Claim a domain; `record` is what to add to its DNS before verifying."""
        body = self.read(ClaimSerializer)
        claimed = verification.claim(
            self.platform_request,
            self.principal,
            body["domain"],
            role=body["role"],
            now=timezone.now(),
        )
        return Response(DomainSerializer(claimed).data, status=status.HTTP_201_CREATED)


class DomainView(ApiView):
    """One domain of the caller's organization."""

    access = {"DELETE": needs("members", "delete")}

    @extend_schema(summary="Give up a domain", responses={204: None})
    def delete(self, request: Request, domain_id: str) -> Response:
        """Give it up: nobody joins by it any more, and who has joined stays."""
        verification.remove(self.platform_request, self.principal, domain_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DomainVerifyView(ApiView):
    """The proof of one domain."""

    access = {"POST": needs("members", "update")}

    @extend_schema(summary="Verify a domain", request=None, responses=DomainSerializer)
    def post(self, request: Request, domain_id: str) -> Response:
        """Look for the record; from then on Google accounts of the domain join by themselves."""
        proven = verification.verify(
            self.platform_request, self.principal, domain_id, now=timezone.now()
        )
        return Response(DomainSerializer(proven).data)
