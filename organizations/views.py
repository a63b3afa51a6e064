"""The members of an organization and its invitations: ``/v1/members``, ``/v1/invitations``."""

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import EmailTaken, HashingBusy, TooManyAttempts
from accounts.models import User
from accounts.serializers import SIGN_IN_RESULT
from accounts.signin import signup
from audit import trail
from common.api.views import NO_STORE
from common.api.viewsets import ListAction, RetrieveAction
from common.openapi import shapes
from common.permissions import PUBLIC, needs
from environments.errors import EnvironmentNotFound
from organizations import created, invitation_acceptance, invitations, members
from organizations.audit_tags import OrganizationTag
from organizations.created import NOTHING, Created
from organizations.errors import (
    AlreadyMember,
    InvitationGone,
    InvitationNotFound,
    InvitingTooOften,
    LastAdmin,
    MemberNotFound,
    TooManyInvitations,
)
from organizations.invitations import Inviter, Offer
from organizations.members import MemberChanges
from organizations.models import Invitation
from organizations.serializers import (
    ChangedMemberSerializer,
    CreatedSerializer,
    InvitationAcceptSerializer,
    InvitationCreateSerializer,
    InvitationFilterSerializer,
    InvitationPreviewSerializer,
    InvitationSerializer,
    InvitationTokenSerializer,
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

    tag = "Members"
    access = {
        "list": needs("members", "read"),
        "retrieve": needs("members", "read").or_oneself(),
        "partial_update": needs("members", "update").fresh(),
        "created": needs("members", "update").or_oneself(),
        "destroy": needs("members", "delete").fresh().or_oneself(),
    }
    errors = {
        "partial_update": (LastAdmin,),
        "destroy": (LastAdmin,),
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
    path_schemas = {"user_id": shapes.UUID}
    not_found = MemberNotFound
    versions = {"retrieve": "partial_update"}
    ordering = "id"

    def get_queryset(self) -> QuerySet[User]:
        """Return the organization's members; for a list, those that match its filters."""
        rows = User.objects.all()
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
                trail.record_request(
                    self.platform_request,
                    OrganizationTag.MEMBER_UPDATE,
                    member=str(member.pk),
                    email=member.email,
                    **changed,
                )
        has_ended = found is not NOTHING and not created.is_admin(member)
        return self.respond({"member": member, "created": found if has_ended else None})

    @extend_schema(summary="List what a member created")
    @action(detail=True)
    def created(self, request: Request, user_id: str) -> Response:
        """List what ends when the member is no admin any more or is removed, and what stays.

        Every member may read its own. Empty lists for a member who is no admin.
        """
        return self.respond(self._created(user_id))

    def _created(self, user_id: str) -> Created:
        member = members.find(self.principal.organization_id, user_id)
        return created.of_admin(member, now=timezone.now())

    @extend_schema(summary="Remove a member")
    def destroy(self, request: Request, user_id: str) -> Response:
        """Delete a member; its sessions, devices and factors end immediately.

        Every member may remove itself, whatever its roles, with a recent proof. The address can
        sign up or be invited again. The last admin cannot be removed. `created`
        lists what the member had created as an admin: the keys and invitations that have ended, and
        what stays.
        """
        found = self._created(user_id)
        with transaction.atomic():
            gone = members.remove(
                self.principal.organization_id,
                user_id,
                by="" if user_id == str(self.principal.user_id) else self.principal.name,
                now=timezone.now(),
                said=created.summary(found),
            )
            trail.record_request(
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


@extend_schema_view(
    list=extend_schema(
        summary="List invitations",
        description="List the invitations of the last weeks, the newest first.",
    ),
)
class InvitationViewSet(ListAction):
    """The invitations of the caller's organization; two actions are for the holder of a token."""

    tag = "Invitations"
    access = {
        "list": needs("members", "read"),
        "create": needs("members", "create").fresh(),
        "destroy": needs("members", "delete").fresh(),
        "preview": PUBLIC,
        "accept": PUBLIC,
    }
    errors = {
        "create": (AlreadyMember, TooManyInvitations, InvitingTooOften),
        "destroy": (InvitationNotFound,),
        "preview": (InvitationGone, TooManyAttempts),
        "accept": (EnvironmentNotFound, EmailTaken, InvitationGone, TooManyAttempts, HashingBusy),
    }
    serializer_class = InvitationSerializer
    request_serializers = {
        "create": InvitationCreateSerializer,
        "preview": InvitationTokenSerializer,
        "accept": InvitationAcceptSerializer,
    }
    query_serializers = {"list": InvitationFilterSerializer}
    response_serializers = {"preview": InvitationPreviewSerializer, "accept": SIGN_IN_RESULT}
    success_statuses = {
        "create": status.HTTP_202_ACCEPTED,
        "accept": status.HTTP_201_CREATED,
    }
    lookup_url_kwarg = "invitation_id"
    path_schemas = {"invitation_id": shapes.UUID}

    def get_queryset(self) -> QuerySet[Invitation]:
        """Return the organization's invitations that match the filters."""
        rows = Invitation.objects.all()
        return _filtered_invitations(rows, self.read_query()).select_related("invited_by")

    @extend_schema(summary="Invite somebody")
    def create(self, request: Request) -> Response:
        """Mail an invitation, valid once within seven days; it replaces an earlier one.

        The response is the same whether or not the address has an account elsewhere; only the mail
        differs. A member of the organization is not invited again.
        """
        body = self.read()
        who, now = self.principal, timezone.now()
        offer = Offer(signup.canonical(body["email"]), body["roles"], body["labels"])
        invitations.refuse_member(who.organization_id, offer.email)
        # None for a development token, which has no address.
        is_verified = who.email_verified is not False
        invitations.check_rate_limit(
            who.organization_id, offer.email, is_verified=is_verified, now=now
        )
        with transaction.atomic():
            inviter = Inviter(who.user_id, (who.email or "") if is_verified else "")
            invitation = invitations.invite(who.organization_id, offer, inviter=inviter, now=now)
            trail.record_request(
                self.platform_request,
                OrganizationTag.INVITATION_CREATE,
                invitation=str(invitation.pk),
                email=offer.email,
                roles=offer.roles,
            )
        return self.respond(invitation)

    @extend_schema(summary="Revoke an invitation")
    def destroy(self, request: Request, invitation_id: str) -> Response:
        """Revoke an open invitation; its link no longer works."""
        organization_id = self.principal.organization_id
        with transaction.atomic():
            gone = invitations.revoke(organization_id, invitation_id, now=timezone.now())
            trail.record_request(
                self.platform_request,
                OrganizationTag.INVITATION_DELETE,
                invitation=invitation_id,
                email=gone.email,
            )
        return self.no_content()

    @extend_schema(summary="Preview an invitation")
    @action(detail=False, methods=["post"])
    def preview(self, request: Request) -> Response:
        """Return the invitation of a token, without using the token."""
        token = self.read()["token"]
        offered = invitation_acceptance.preview(self.platform_request, token, now=timezone.now())
        return self.respond(offered, headers=NO_STORE)

    @extend_schema(summary="Accept an invitation")
    @action(detail=False, methods=["post"])
    def accept(self, request: Request) -> Response:
        """Create the account with its password, and sign in; its e-mail is verified.

        The response is that of a login: if the organization requires a second factor, it must be
        set up first.
        """
        done = invitation_acceptance.accept(
            self.platform_request, **self.read(), now=timezone.now()
        )
        return self.respond(done.answer, headers=NO_STORE)


def _filtered_invitations(
    rows: QuerySet[Invitation], wanted: dict[str, Any]
) -> QuerySet[Invitation]:
    if "email" in wanted:
        rows = rows.filter(email__icontains=wanted["email"])
    return _in_state(rows, wanted["state"]) if "state" in wanted else rows


def _in_state(rows: QuerySet[Invitation], state: str) -> QuerySet[Invitation]:
    if state == "accepted":
        return rows.filter(accepted_at__isnull=False)
    if state == "revoked":
        return rows.filter(revoked_at__isnull=False)
    rows = rows.filter(accepted_at=None, revoked_at=None)
    now = timezone.now()
    return (
        rows.filter(expires_at__gt=now) if state == "pending" else rows.filter(expires_at__lte=now)
    )
