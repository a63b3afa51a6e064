"""The sign-in providers, and the members of an organization who use them."""

from typing import Any, Final

from django.conf import settings
from django.db.models import Count

from oauth.models import Identity, Provider

# Members listed per provider; the list of members can be filtered for the others.
MAX_NAMED: Final = 20


def used_in(organization_id: int) -> list[dict[str, Any]]:
    """Return the providers that are configured, or that members are linked to."""
    rows = Identity.scoped.within_organization(organization_id)
    counts = dict(rows.values_list("provider").annotate(Count("user_id", distinct=True)))
    return [
        {
            "name": provider.value,
            "title": str(provider.label),
            "is_offered": provider.value in settings.OAUTH.providers,
            "member_count": counts.get(provider.value, 0),
            "members": _named(organization_id, provider) if provider.value in counts else [],
        }
        for provider in Provider
        if provider.value in settings.OAUTH.providers or provider.value in counts
    ]


def _named(organization_id: int, provider: Provider) -> list[str]:
    rows = Identity.scoped.within_organization(organization_id).filter(provider=provider.value)
    emails = rows.exclude(user__email="").values_list("user__email", flat=True)
    return list(emails.distinct().order_by("user__email")[:MAX_NAMED])
