"""Invitations in JSON."""

from django.utils import timezone
from rest_framework import serializers

from accounts.mailed_secrets import MAX_TOKEN_CHARS
from accounts.serializers import PasswordField
from common.api.views import StrictSerializer
from common.emails import AddressField
from organizations.models import Invitation
from organizations.serializers import LabelsField, RolesField

STATES = ["pending", "expired", "accepted", "revoked"]


class InvitationSerializer(serializers.Serializer[Invitation]):
    """An invitation; it does not reveal whether the address has an account."""

    id = serializers.UUIDField()
    email = serializers.EmailField()
    roles = serializers.ListField(child=serializers.CharField())
    labels = serializers.ListField(child=serializers.CharField())
    state = serializers.SerializerMethodField()
    invited_by = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()

    def get_state(self, invitation: Invitation) -> str:
        """Return one of `pending`, `expired`, `accepted`, `revoked`."""
        return invitation.state(timezone.now())

    def get_invited_by(self, invitation: Invitation) -> str | None:
        """Return the inviting member's address; null for an operator or a removed member."""
        return (invitation.invited_by.email or None) if invitation.invited_by else None


class InvitationCreateSerializer(StrictSerializer):
    """The address to invite, and its roles and labels."""

    email = AddressField()
    roles = RolesField(allow_empty=False)
    labels = LabelsField(required=False, default=list)


class InvitationFilterSerializer(StrictSerializer):
    """Filters of the list of invitations, combined with AND."""

    state = serializers.ChoiceField(choices=STATES, required=False)
    email = serializers.CharField(
        max_length=254, required=False, help_text="A part of the address, in any case."
    )


class InvitationTokenSerializer(StrictSerializer):
    """The token of the mailed link."""

    token = serializers.CharField(max_length=MAX_TOKEN_CHARS)


class InvitationAcceptSerializer(InvitationTokenSerializer):
    """The token of the mailed link, and the password of the new account."""

    password = PasswordField()


class InvitationPreviewSerializer(serializers.Serializer[Invitation]):
    """The invitation, as the holder of its token sees it."""

    email = serializers.EmailField()
    organization = serializers.CharField(source="organization.name")
    roles = serializers.ListField(child=serializers.CharField())
    invited_by = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField()

    def get_invited_by(self, invitation: Invitation) -> str | None:
        """Return the inviting member's address if it is verified, else null."""
        host = invitation.invited_by
        return host.email if host is not None and host.email_verified_at is not None else None
