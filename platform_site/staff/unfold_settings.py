"""Functions of settings.UNFOLD: the sidebar, grouped by subject, and the admin's own files."""

from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse

# Title, icon of Material Symbols, name of the admin's URL.
Entry = tuple[str, str, str]
CUSTOMERS: Final[tuple[Entry, ...]] = (
    ("Organizations", "domain", "environments_organization_changelist"),
    ("Users", "group", "accounts_user_changelist"),
    ("Environments", "layers", "environments_environment_changelist"),
    ("Invitations", "forward_to_inbox", "organizations_invitation_changelist"),
    ("Domains", "language", "oauth_domain_changelist"),
)
SIGN_IN: Final[tuple[Entry, ...]] = (
    ("Sessions", "devices", "accounts_session_changelist"),
    ("API keys", "vpn_key", "accounts_apikey_changelist"),
    ("Second factors", "phonelink_lock", "twofactor_factor_changelist"),
    ("Passkeys", "passkey", "twofactor_passkey_changelist"),
    ("Trusted devices", "verified_user", "twofactor_trusteddevice_changelist"),
    ("Linked accounts", "link", "oauth_identity_changelist"),
    ("Recoveries", "support", "recovery_recovery_changelist"),
)
SQL: Final[tuple[Entry, ...]] = (
    ("Databases", "database", "sqlgateway_database_changelist"),
    ("Clusters", "dns", "sqlgateway_cluster_changelist"),
    ("Limits", "speed", "sqlgateway_organizationlimits_changelist"),
)
CACHE: Final[tuple[Entry, ...]] = (
    ("Nodes", "hub", "edgecache_nodes"),
    ("Buckets", "folder", "edgecache_buckets"),
    ("Hosts", "public", "edgecache_hosts"),
    ("Origins", "cloud_download", "edgecache_origins"),
    ("Access keys", "key", "edgecache_keys"),
    ("Metrics", "monitoring", "edgecache_cachesample_changelist"),
)
BILLING: Final[tuple[Entry, ...]] = (
    ("Accounts", "account_balance", "billing_account_changelist"),
    ("Journals", "receipt_long", "billing_journal_changelist"),
    ("Payouts", "payments", "billing_payout_changelist"),
    ("Payout methods", "account_balance_wallet", "billing_payoutmethod_changelist"),
    ("Top-ups", "add_card", "billing_topup_changelist"),
    ("Disputes", "gavel", "billing_paymentreversal_changelist"),
    ("Quarantined nodes", "report", "billing_quarantine_changelist"),
    ("Rates", "sell", "billing_rate_changelist"),
    ("Usage", "data_usage", "billing_usageline_changelist"),
    ("Rejected lines", "rule", "billing_rejectedline_changelist"),
)
OPERATIONS: Final[tuple[Entry, ...]] = (
    ("Audit trail", "history", "audit_auditevent_changelist"),
    ("Mail and SMS", "mail", "outbox_delivery_changelist"),
    ("Webhooks", "webhook", "outbox_webhookendpoint_changelist"),
    ("Webhook deliveries", "outbox", "outbox_webhookdelivery_changelist"),
    ("Tasks", "checklist", "procrastinate_procrastinatejob_changelist"),
)


def navigation(_request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sidebar; without the cache's feature its entries are omitted."""
    groups = {"Customers": CUSTOMERS, "Sign-in": SIGN_IN, "SQL": SQL}
    if settings.HAS_CACHE:
        groups |= {"Edge cache": CACHE, "Billing": BILLING}
    groups |= {"Operations": OPERATIONS}
    dashboard = {"items": [_item("Dashboard", "dashboard", "index")]}
    return [dashboard, *({"title": title, "items": _items(groups[title])} for title in groups)]


def _items(entries: tuple[Entry, ...]) -> list[dict[str, str]]:
    return [_item(*entry) for entry in entries]


def _item(title: str, icon: str, name: str) -> dict[str, str]:
    return {"title": title, "icon": icon, "link": reverse(f"admin:{name}")}


def style(_request: HttpRequest) -> str:
    """Return the path of the style sheet."""
    return static("staff/admin.css")


def landmarks(_request: HttpRequest) -> str:
    """Return the path of the script that adds landmark roles to a page."""
    return static("staff/landmarks.js")


def restored(_request: HttpRequest) -> str:
    """Return the path of the console's script that reloads a page restored by Back."""
    return static("console/frame/restored.js")
