"""``/v1/invitations``."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.serializers import SIGN_IN_RESULT
from accounts.signin import signup
from audit import audit
from common.api.views import NO_STORE
from common.api.viewsets import ListAction
from common.permissions import PUBLIC, needs
from organizations import invitation_acceptance, invitations
from organizations.audit_tags import OrganizationTag
from organizations.invitations import Inviter, Offer
from organizations.invitations_serializers import (
    InvitationAcceptSerializer,
    InvitationCreateSerializer,
    InvitationFilterSerializer,
    InvitationPreviewSerializer,
    InvitationSerializer,
    InvitationTokenSerializer,
)
from organizations.models import Invitation


@extend_schema_view(
    list=extend_schema(
        summary="List invitations",
        description="List the invitations of the last weeks, the newest first.",
    ),
)
class InvitationViewSet(ListAction):
    """The invitations of the caller's organization; two actions are for the holder of a token."""

    access = {
        "list": needs("members", "read"),
        "create": needs("members", "create").fresh(),
        "destroy": needs("members", "delete").fresh(),
        "preview": PUBLIC,
        "accept": PUBLIC,
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

    def get_queryset(self) -> QuerySet[Invitation]:
        """Return the organization's invitations that match the filters."""
        rows = Invitation.scoped.within_organization(self.principal.organization_id)
        return _filtered_invitations(rows, self.read_query()).select_related("invited_by")

    @extend_schema(summary="Invite somebody")
    def create(self, request: Request) -> Response:
        """Mail an invitation, valid once within seven days; it replaces an earlier one.

        The response is the same whether or not the address has an account; only the mail differs.
        """
        body = self.read()
        who, now = self.principal, timezone.now()
        offer = Offer(signup.canonical(body["email"]), body["roles"], body["labels"])
        # None for a development token, which has no address.
        is_verified = who.email_verified is not False
        invitations.check_rate_limit(
            who.organization_id, offer.email, is_verified=is_verified, now=now
        )
        with transaction.atomic():
            inviter = Inviter(who.user_id, (who.email or "") if is_verified else "")
            invitation = invitations.invite(who.organization_id, offer, inviter=inviter, now=now)
            audit.record_request(
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
            audit.record_request(
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
