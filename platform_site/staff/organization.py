"""An organization's figures on its page in the admin."""

from datetime import datetime
from typing import Final

from django.apps import apps
from django.conf import settings
from django.db.models import Count, Q, Sum
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiKey, Session, User
from billing.money import credits_text
from environments import request_activity
from environments.models import Environment, RequestHour
from outbox.models import WebhookEndpoint
from platform_site.staff.board import Card, link
from sqlgateway.clusters.organization_limits import LIMITS, quota_of
from sqlgateway.models import Database

BALANCES: Final = ("granted", "paid", "debt")


def facts(object_id: str) -> list[Card]:
    """Return a card for each figure, with a link to its list.

    Each runs one query that uses an index.
    """
    if not object_id.isdecimal():
        return []
    number = int(object_id)
    cards = [*_people(number), *_data(number, now=timezone.now())]
    return [*cards, *_cache(number)] if settings.HAS_CACHE else cards


def _people(number: int) -> list[Card]:
    users = User.objects.filter(organization_id=number).aggregate(
        all=Count("pk"), active=Count("pk", filter=Q(is_active=True))
    )
    sessions = Session.objects.filter(organization_id=number, ended_at=None).count()
    keys = ApiKey.objects.filter(organization_id=number, revoked_at=None).count()
    hooks = WebhookEndpoint.objects.filter(organization_id=number).count()
    return [
        _card("Users", users["all"], f"{users['active']} active", "accounts_user", number),
        _card("Open sessions", sessions, "", "accounts_session", number),
        _card("API keys", keys, "not revoked", "accounts_apikey", number),
        _card("Webhooks", hooks, "", "outbox_webhookendpoint", number),
        Card("Audit trail", "", "Events", link("audit_auditevent_changelist", _by(number))),
    ]


def _data(number: int, *, now: datetime) -> list[Card]:
    environments = Environment.objects.filter(organization_id=number, deleted_at=None).count()
    databases = Database.objects.filter(organization_id=number).aggregate(
        all=Count("pk"),
        size=Sum("size_bytes"),
        full=Count("pk", filter=Q(is_over_quota=True)),
    )
    asked = (
        RequestHour.objects.filter(organization_id=number)
        .filter(hour__gte=request_activity.first_hour(now=now))
        .aggregate(all=Sum("requests"), refused=Sum("refused"), failed=Sum("failed"))
    )
    over = f", {databases['full']} over the quota" if databases["full"] else ""
    size = f"{filesizeformat(databases['size'] or 0)}{over}"
    errors = f"{asked['refused'] or 0} refused, {asked['failed'] or 0} failed"
    return [
        _card("Environments", environments, "", "environments_environment", number),
        _card("Databases", databases["all"], size, "sqlgateway_database", number),
        Card("API requests, 24 h", str(asked["all"] or 0), errors, ""),
        _limits(number),
    ]


def _limits(number: int) -> Card:
    quota = quota_of(number)
    own = [limit.label for limit in LIMITS if limit.name in quota.own]
    path = reverse("admin:sqlgateway_organizationlimits_change", args=[number])
    if not own:
        return Card("Limits", "", "The platform's", path)
    return Card("Limits", f"{len(own)} own", ", ".join(own), path)


def _cache(number: int) -> list[Card]:
    # Only if the feature's app is installed.
    account = apps.get_model("billing", "Account")
    owned = account.objects.filter(organization_id=number, kind__in=BALANCES)
    balance = owned.aggregate(sum=Sum("balance_ucr"))["sum"] or 0
    of_it = f"organization_id={number}"
    return [
        Card("Buckets", "", "List", link("edgecache_buckets", of_it)),
        Card("Origins", "", "List", link("edgecache_origins", of_it)),
        Card("Access keys", "", "List", link("edgecache_keys", of_it)),
        Card("Nodes", "", "List", link("edgecache_nodes", of_it)),
        Card(
            "Credits",
            credits_text(balance),
            "granted and paid, less debts",
            link("billing_account_changelist", _by(number)),
        ),
        Card("Usage", "", "Lines", link("billing_usageline_changelist", _by(number))),
    ]


def _by(number: int) -> str:
    # A search would compare every row as text, with no index.
    return f"organization_id__exact={number}"


def _card(title: str, value: int, note: str, model: str, number: int) -> Card:
    of_it = f"organization__id__exact={number}"
    return Card(title, str(value), note, link(f"{model}_changelist", of_it))
