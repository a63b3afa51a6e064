"""``/v1/members``."""

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit import audit
from accounts.members import members
from accounts.members.members import Changes
from accounts.members.serializers import (
    MemberFilterSerializer,
    MemberSerializer,
    MemberUpdateSerializer,
)
from accounts.models import User
from platform_site.lib.api import ApiView, CursorPages
from platform_site.lib.permissions import needs


class MemberPages(CursorPages):
    """Who joined first leads."""

    ordering = "id"


class MembersView(ApiView):
    """The members of the caller's organization."""

    access = {"GET": needs("members", "read")}

    @extend_schema(
        operation_id="members_list",
        summary="List members",
        parameters=[*MemberPages.parameters(), MemberFilterSerializer],
        responses=MemberPages.schema_of(MemberSerializer),
    )
    def get(self, request: Request) -> Response:
        """List the members, those first who joined first."""
        rows = User.scoped.within_organization(self.principal.organization_id)
        kept = _filtered(rows, self.read_query(MemberFilterSerializer))
        return MemberPages.respond(self, kept, serializer=MemberSerializer)


def _filtered(rows: QuerySet[User], wanted: dict[str, Any]) -> QuerySet[User]:
    if "email" in wanted:
        rows = rows.filter(email__icontains=wanted["email"])
    if "role" in wanted:
        role = [wanted["role"]]
        rows = rows.filter(Q(roles__contains=role) | Q(derived_roles__contains=role))
    if "label" in wanted:
        rows = rows.filter(labels__contains=[wanted["label"]])
    if "disabled" in wanted:
        rows = rows.filter(is_active=not wanted["disabled"])
    return rows


class MemberView(ApiView):
    """One member of the caller's organization."""

    access = {
        "GET": needs("members", "read"),
        "PATCH": needs("members", "update").fresh(),
        "DELETE": needs("members", "delete").fresh(),
    }

    @extend_schema(summary="Read a member", responses=MemberSerializer)
    def get(self, request: Request, user_id: str) -> Response:
        """Give one member."""
        member = members.find(self.principal.organization_id, user_id)
        return Response(MemberSerializer(member).data)

    @extend_schema(
        summary="Change a member", request=MemberUpdateSerializer, responses=MemberSerializer
    )
    def patch(self, request: Request, user_id: str) -> Response:
        """Change roles, labels, or whether the member may come in.

        Holds on the member's very next request, for access tokens too; disabling also ends its
        sessions and trusted devices. The last admin can be neither demoted nor disabled.
        """
        changes = Changes(**self.read(MemberUpdateSerializer))
        with transaction.atomic():
            member, changed = members.change(
                self.principal.organization_id,
                user_id,
                changes,
                by=self.principal.name,
                now=timezone.now(),
            )
            if changed:
                audit.record_request(
                    self.platform_request, "api:member:update", member=str(member.pk), **changed
                )
        return Response(MemberSerializer(member).data)

    @extend_schema(summary="Remove a member", responses={204: None})
    def delete(self, request: Request, user_id: str) -> Response:
        """Delete a member: its sessions, devices and factors end at once.

        Its address is free: it can sign up, or be invited again. The last admin cannot be removed.
        """
        with transaction.atomic():
            gone = members.remove(
                self.principal.organization_id,
                user_id,
                by=self.principal.name,
                now=timezone.now(),
            )
            audit.record_request(
                self.platform_request, "api:member:delete", member=str(gone.pk), email=gone.email
            )
        return Response(status=status.HTTP_204_NO_CONTENT)
