"""Domains in JSON."""

from rest_framework import serializers

from common.api.views import StrictSerializer
from oauth.domains import verification
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
