"""``/v1/api-keys``."""

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api_keys import api_keys
from accounts.api_keys.api_keys import NewApiKey
from accounts.api_keys.serializers import (
    ApiKeyCreateSerializer,
    ApiKeyFilterSerializer,
    ApiKeySerializer,
    NewApiKeySerializer,
)
from accounts.audit_tags import AccountTag
from accounts.errors import ApiKeyNotFound, ApiKeysMadeTooOften, SessionRevoked, TooManyApiKeys
from accounts.models import ApiKey
from audit import trail
from common.api.views import NO_STORE
from common.api.viewsets import ListAction, RetrieveAction
from common.openapi import shapes
from common.permissions import needs


@extend_schema_view(
    list=extend_schema(
        summary="List API keys",
        description="List the keys to the caller's environment, the newest first. Ended ones stay "
        "in the list for 30 days.",
    ),
    retrieve=extend_schema(summary="Read an API key", description="Return one key, not its text."),
)
class ApiKeyViewSet(ListAction, RetrieveAction):
    """The API keys of the caller's environment."""

    tag = "API keys"
    access = {
        "list": needs("api_keys", "read"),
        "retrieve": needs("api_keys", "read"),
        "create": needs("api_keys", "create").fresh(),
        "destroy": needs("api_keys", "delete").fresh(),
    }
    errors = {"create": (SessionRevoked, TooManyApiKeys, ApiKeysMadeTooOften)}
    serializer_class = ApiKeySerializer
    request_serializers = {"create": ApiKeyCreateSerializer}
    query_serializers = {"list": ApiKeyFilterSerializer}
    response_serializers = {"create": NewApiKeySerializer}
    lookup_url_kwarg = "key_id"
    path_schemas = {"key_id": shapes.UUID}
    not_found = ApiKeyNotFound

    def get_queryset(self) -> QuerySet[ApiKey]:
        """Return the environment's keys; for a list, filtered by state."""
        rows = ApiKey.objects.select_related("creator")
        state = self.read_query().get("state") if self.action == "list" else None
        now = timezone.now()
        if state == "revoked":
            return rows.filter(revoked_at__isnull=False)
        if state == "active":
            return rows.filter(revoked_at=None, expires_at__gt=now)
        return rows.filter(revoked_at=None, expires_at__lte=now) if state == "expired" else rows

    @extend_schema(summary="Make an API key")
    def create(self, request: Request) -> Response:
        """Create a key for the caller's environment. Only this response contains its text.

        It may do what both its role and its scopes allow, but change no accounts, members, keys or
        payments. It is valid until it expires or is revoked, its environment is deleted, or its
        creator is removed, disabled or no longer an admin.
        """
        wanted, now = NewApiKey(**self.read()), timezone.now()
        who = self.principal
        api_keys.check_rate_limit(who.organization_id, now=now)
        with transaction.atomic():
            key = api_keys.create(who, wanted, now=now)
            trail.record_request(
                self.platform_request,
                AccountTag.API_KEY_CREATE,
                key=str(key.pk),
                name=key.name,
                role=key.role,
                scopes=key.scopes,
                expires_at=int(key.expires_at.timestamp()),
            )
        return self.respond(key, headers=NO_STORE)

    @extend_schema(summary="Revoke an API key")
    def destroy(self, request: Request, key_id: str) -> Response:
        """Revoke a key: its next request is refused."""
        with transaction.atomic():
            key = api_keys.revoke(self.get_queryset(), key_id, now=timezone.now())
            trail.record_request(
                self.platform_request, AccountTag.API_KEY_REVOKE, key=str(key.pk), name=key.name
            )
        return self.no_content()
