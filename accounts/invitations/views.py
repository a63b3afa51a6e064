"""``/v1/invitations``."""

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit import audit
from accounts.invitations import acceptance, invitations
from accounts.invitations.invitations import Host, Offer
from accounts.invitations.serializers import (
    InvitationAcceptSerializer,
    InvitationCreateSerializer,
    InvitationFilterSerializer,
    InvitationPreviewSerializer,
    InvitationSerializer,
    InvitationTokenSerializer,
)
from accounts.models import Invitation
from accounts.serializers import SIGN_IN_RESULT
from accounts.signin import signup
from platform_site.lib.api import NO_STORE, ApiView, CursorPages
from platform_site.lib.permissions import PUBLIC, needs


class InvitationsView(ApiView):
    """The invitations of the caller's organization."""

    access = {
        "GET": needs("members", "read"),
        "POST": needs("members", "create").fresh(),
    }

    @extend_schema(
        operation_id="invitations_list",
        summary="List invitations",
        parameters=[*CursorPages.parameters(), InvitationFilterSerializer],
        responses=CursorPages.schema_of(InvitationSerializer),
    )
    def get(self, request: Request) -> Response:
        """List the invitations of the last weeks, the newest first."""
        rows: QuerySet[Invitation] = Invitation.scoped.within_organization(
            self.principal.organization_id
        )
        wanted = self.read_query(InvitationFilterSerializer)
        if "email" in wanted:
            rows = rows.filter(email__icontains=wanted["email"])
        if "state" in wanted:
            rows = _in_state(rows, wanted["state"])
        return CursorPages.respond(
            self, rows.select_related("invited_by"), serializer=InvitationSerializer
        )

    @extend_schema(
        summary="Invite somebody",
        request=InvitationCreateSerializer,
        responses={202: InvitationSerializer},
    )
    def post(self, request: Request) -> Response:
        """Mail an invitation, good for seven days and once; it replaces an earlier one.

        The answer is the same whether or not the address has an account: only its mailbox is told.
        """
        body = self.read(InvitationCreateSerializer)
        who, now = self.principal, timezone.now()
        offer = Offer(signup.canonical(body["email"]), body["roles"], body["labels"])
        invitations.refuse_flood(who.organization_id, offer.email, now=now)
        with transaction.atomic():
            host = Host(who.user_id, who.email or "")
            invitation = invitations.invite(who.organization_id, offer, host=host, now=now)
            audit.record_request(
                self.platform_request,
                "api:invitation:create",
                invitation=str(invitation.pk),
                email=offer.email,
                roles=offer.roles,
            )
        answer = InvitationSerializer(invitation).data
        return Response(answer, status=status.HTTP_202_ACCEPTED)


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


class InvitationView(ApiView):
    """One invitation of the caller's organization."""

    access = {"DELETE": needs("members", "delete").fresh()}

    @extend_schema(summary="Revoke an invitation", responses={204: None})
    def delete(self, request: Request, invitation_id: str) -> Response:
        """End an invitation that was not accepted; its link is void at once."""
        who = self.principal
        with transaction.atomic():
            gone = invitations.revoke(who.organization_id, invitation_id, now=timezone.now())
            audit.record_request(
                self.platform_request,
                "api:invitation:delete",
                invitation=invitation_id,
                email=gone.email,
            )
        return Response(status=status.HTTP_204_NO_CONTENT)


class InvitationPreviewView(ApiView):
    """Look at an invitation."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Look at an invitation",
        request=InvitationTokenSerializer,
        responses=InvitationPreviewSerializer,
    )
    def post(self, request: Request) -> Response:
        """Say what a token offers, and leave it as it is."""
        body = self.read(InvitationTokenSerializer)
        offered = acceptance.preview(self.platform_request, body["token"], now=timezone.now())
        host = offered.invited_by
        answer = {
            "email": offered.email,
            "organization": offered.organization.name,
            "roles": offered.roles,
            "invited_by": (host.email or None) if host else None,
            "expires_at": offered.expires_at,
        }
        return Response(answer, headers=NO_STORE)


class InvitationAcceptView(ApiView):
    """Accept an invitation."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Accept an invitation",
        request=InvitationAcceptSerializer,
        responses={201: SIGN_IN_RESULT},
    )
    def post(self, request: Request) -> Response:
        """Make the account with its password, and sign in; its e-mail is verified.

        Answers as a login does: an organization that requires a second factor has it set up first.
        """
        body = self.read(InvitationAcceptSerializer)
        done = acceptance.accept(self.platform_request, **body, now=timezone.now())
        return Response(done.answer, status=status.HTTP_201_CREATED, headers=NO_STORE)
