"""Members, invitations, and deletions and exports of organizations in JSON."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.mailed_secrets import MAX_TOKEN_CHARS
from accounts.models import User
from accounts.serializers import PasswordField
from common.api.views import StrictSerializer
from common.emails import AddressField
from common.names import NameField
from common.permissions import ROLES
from organizations.created import KINDS
from organizations.members import MAX_LABEL_CHARS, MAX_LABELS
from organizations.models import Invitation, OrganizationExport

INVITATION_STATES = ["pending", "expired", "accepted", "revoked"]


class RolesField(serializers.ListField):
    """Roles without duplicates, the strongest first."""

    def __init__(self, **options: Any) -> None:
        child = serializers.ChoiceField(choices=list(ROLES))
        super().__init__(child=child, max_length=20, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        """Return them in order."""
        given = super().to_internal_value(data)
        return [role for role in ROLES if role in given]


class LabelsField(serializers.ListField):
    """Labels without duplicates."""

    def __init__(self, **options: Any) -> None:
        child = NameField(max_length=MAX_LABEL_CHARS)
        super().__init__(child=child, max_length=MAX_LABELS, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        """Return them in the given order."""
        return list(dict.fromkeys(super().to_internal_value(data)))


class MemberSerializer(serializers.Serializer[User]):
    """A member of the organization.

    roles: given by an admin; derived_roles: from memberships at an identity provider. Both are
    effective.
    """

    user_id = serializers.UUIDField(source="id")
    email = serializers.SerializerMethodField()
    email_verified = serializers.SerializerMethodField()
    roles = serializers.ListField(child=serializers.CharField())
    derived_roles = serializers.ListField(child=serializers.CharField())
    labels = serializers.ListField(child=serializers.CharField())
    disabled = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    last_login_at = serializers.DateTimeField(source="last_login", allow_null=True)

    @extend_schema_field(serializers.EmailField(allow_null=True))
    def get_email(self, member: User) -> str | None:
        """Return the address; null for an account that has to add one."""
        return member.email or None

    def get_email_verified(self, member: User) -> bool:
        """True if the address was verified."""
        return member.email_verified_at is not None

    def get_disabled(self, member: User) -> bool:
        """True if the member cannot sign in."""
        return not member.is_active


class ItemSerializer(serializers.Serializer[Any]):
    """Something that a member created."""

    kind = serializers.ChoiceField(list(KINDS))
    id = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    environment = serializers.CharField(
        allow_null=True, help_text="Its environment's id; null for the whole organization's."
    )


class CreatedSerializer(serializers.Serializer[Any]):
    """What a member created as an admin.

    ends: what ends when the member is no admin any more; stays: what the organization keeps.
    is_complete: false while the cache does not answer; access keys then end when it does.
    """

    ends = ItemSerializer(many=True)
    stays = ItemSerializer(many=True)
    is_complete = serializers.BooleanField()


class RemovedMemberSerializer(serializers.Serializer[Any]):
    """What a removed member had created."""

    created = CreatedSerializer()


class ChangedMemberSerializer(MemberSerializer):
    """A changed member. created: null where it was no admin, or still is one."""

    created = CreatedSerializer(allow_null=True)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Render ``{"member", "created"}`` as the member with one more field."""
        found = instance["created"]
        shown = None if found is None else CreatedSerializer(found).data
        return {**MemberSerializer(instance["member"]).data, "created": shown}


class MemberUpdateSerializer(StrictSerializer):
    """Changes of a member; omitted fields stay unchanged."""

    roles = RolesField(required=False)
    labels = LabelsField(required=False)
    disabled = serializers.BooleanField(required=False)


class MemberFilterSerializer(StrictSerializer):
    """Filters of the list of members, combined with AND."""

    email = serializers.CharField(
        max_length=254, required=False, help_text="A part of the address, in any case."
    )
    role = serializers.ChoiceField(choices=list(ROLES), required=False)
    label = serializers.CharField(  # type: ignore[assignment]  # the filter's name
        max_length=100, required=False
    )
    disabled = serializers.BooleanField(required=False)


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

    state = serializers.ChoiceField(choices=INVITATION_STATES, required=False)
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

    id = serializers.UUIDField()
    email = serializers.EmailField()
    organization = serializers.CharField(source="organization.name")
    roles = serializers.ListField(child=serializers.CharField())
    invited_by = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField()

    def get_invited_by(self, invitation: Invitation) -> str | None:
        """Return the inviting member's address if it is verified, else null."""
        return invitation.inviter_email()


class DeletionSerializer(StrictSerializer):
    """A request for deletion: the organization's name, as it is shown."""

    name = serializers.CharField(max_length=200)


class ExportSerializer(serializers.Serializer[OrganizationExport]):
    """An export. missing: what is not in its archive; failure: why there is no archive, or ''."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(OrganizationExport.State.choices)
    requested_by = serializers.CharField()
    requested_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    size_bytes = serializers.IntegerField()
    failure = serializers.CharField()
    missing = serializers.ListField(child=serializers.CharField())
