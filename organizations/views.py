"""``/v1/members``."""

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import MemberNotFound
from accounts.models import User
from audit import audit
from common.api.viewsets import ListAction, RetrieveAction
from common.permissions import needs
from organizations import created, members
from organizations.audit_tags import OrganizationTag
from organizations.created import NOTHING, Created
from organizations.members import MemberChanges
from organizations.serializers import (
    ChangedMemberSerializer,
    CreatedSerializer,
    MemberFilterSerializer,
    MemberSerializer,
    MemberUpdateSerializer,
    RemovedMemberSerializer,
)


@extend_schema_view(
    list=extend_schema(
        summary="List members", description="List the members, those first who joined first."
    ),
    retrieve=extend_schema(summary="Read a member", description="Return one member."),
)
class MemberViewSet(ListAction, RetrieveAction):
    """The members of the caller's organization."""

    access = {
        "list": needs("members", "read"),
        "retrieve": needs("members", "read"),
        "partial_update": needs("members", "update").fresh(),
        "created": needs("members", "update"),
        "destroy": needs("members", "delete").fresh(),
    }
    serializer_class = MemberSerializer
    request_serializers = {"partial_update": MemberUpdateSerializer}
    response_serializers = {
        "partial_update": ChangedMemberSerializer,
        "destroy": RemovedMemberSerializer,
        "created": CreatedSerializer,
    }
    query_serializers = {"list": MemberFilterSerializer}
    lookup_url_kwarg = "user_id"
    not_found = MemberNotFound
    versions = {"retrieve": "partial_update"}
    ordering = "id"

    def get_queryset(self) -> QuerySet[User]:
        """Return the organization's members; for a list, those that match its filters."""
        rows = User.scoped.within_organization(self.principal.organization_id)
        return _filtered_members(rows, self.read_query()) if self.action == "list" else rows

    @extend_schema(summary="Change a member")
    def partial_update(self, request: Request, user_id: str) -> Response:
        """Change roles, labels, or whether the member may sign in.

        Takes effect on the member's next request, also with an issued access token. Disabling also
        ends its sessions and trusted devices. The last admin cannot be demoted or disabled. If
        the member was an admin and is none any more, `created` lists what it had created: the keys
        and invitations that have ended, and what stays. Otherwise it is null.
        """
        changes = MemberChanges(**self.read())
        may_end = changes.roles is not None or changes.disabled
        found = self._created(user_id) if may_end else NOTHING
        with transaction.atomic():
            member, changed = members.change(
                self.principal.organization_id,
                user_id,
                changes,
                by=self.principal.name,
                now=timezone.now(),
                said=created.summary(found),
                check=lambda member: self.require_match({"member": member, "created": None}),
            )
            if changed:
                audit.record_request(
                    self.platform_request,
                    OrganizationTag.MEMBER_UPDATE,
                    member=str(member.pk),
                    **changed,
                )
        has_ended = found is not NOTHING and not created.is_admin(member)
        return self.respond({"member": member, "created": found if has_ended else None})

    @extend_schema(summary="List what a member created")
    @action(detail=True)
    def created(self, request: Request, user_id: str) -> Response:
        """List what ends when the member is no admin any more or is removed, and what stays.

        Empty lists for a member who is no admin.
        """
        return self.respond(self._created(user_id))

    def _created(self, user_id: str) -> Created:
        member = members.find(self.principal.organization_id, user_id)
        return created.of_admin(member, now=timezone.now())

    @extend_schema(summary="Remove a member")
    def destroy(self, request: Request, user_id: str) -> Response:
        """Delete a member; its sessions, devices and factors end immediately.

        Its address can sign up or be invited again. The last admin cannot be removed. `created`
        lists what the member had created as an admin: the keys and invitations that have ended, and
        what stays.
        """
        found = self._created(user_id)
        with transaction.atomic():
            gone = members.remove(
                self.principal.organization_id,
                user_id,
                by=self.principal.name,
                now=timezone.now(),
                said=created.summary(found),
            )
            audit.record_request(
                self.platform_request,
                OrganizationTag.MEMBER_DELETE,
                member=str(gone.pk),
                email=gone.email,
            )
        return self.respond({"created": found})


def _filtered_members(rows: QuerySet[User], wanted: dict[str, Any]) -> QuerySet[User]:
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
