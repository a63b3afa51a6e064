"""The console's pages and navigation; pages are only declared here."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from django.conf import settings

Feature = Literal["cache", "providers"]
Role = Literal["admin", "operator", "reader"]


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """A page at /console/PATH, made from templates/console/TEMPLATE.

    name: of its URL, such as `console:members`; the default path is the name with dashes.
    label, icon: in the navigation; the icon is one of `vendor/icons.txt`.
    roles: who sees it in the navigation; () means everyone. The API enforces permissions.
    feature: the installation's feature that the page requires.
    """

    name: str
    template: str
    label: str = ""
    icon: str = ""
    path: str | None = None
    roles: tuple[Role, ...] = ()
    feature: Feature | None = None

    @property
    def address(self) -> str:
        """Return the page's path below /console/."""
        return self.name.replace("_", "-") if self.path is None else self.path

    @property
    def url_name(self) -> str:
        """Return the name by which templates link to it."""
        return f"console:{self.name}"


@dataclass(frozen=True, slots=True)
class PageGroup:
    """A group of pages in the navigation; the first group has no title."""

    title: str
    pages: tuple[ConsolePage, ...]


NAVIGATION: Final = (
    PageGroup(
        "",
        (ConsolePage("home", "overview/overview.html", "Overview", "layout-dashboard", path=""),),
    ),
    PageGroup(
        "Data",
        (
            ConsolePage("sql", "sql/sql.html", "SQL", "square-terminal"),
            ConsolePage("tables", "tables/tables.html", "Tables", "table"),
            ConsolePage("objects", "objects/objects.html", "Objects", "box", feature="cache"),
            ConsolePage("cache", "cache/cache.html", "Edge cache", "gauge", feature="cache"),
        ),
    ),
    PageGroup(
        "Billing",
        (
            ConsolePage(
                "usage",
                "usage/usage.html",
                "Usage",
                "receipt",
                roles=("admin", "operator"),
                feature="cache",
            ),
            ConsolePage(
                "operator",
                "operator/operator.html",
                "Operator",
                "server",
                roles=("admin", "operator"),
                feature="cache",
            ),
        ),
    ),
    PageGroup(
        "Team",
        (
            ConsolePage("environments", "environments/environments.html", "Environments", "layers"),
            ConsolePage("members", "members/members.html", "Members", "users"),
            ConsolePage(
                "api_keys",
                "api_keys/api_keys.html",
                "API keys",
                "key-round",
                roles=("admin", "operator"),
            ),
            ConsolePage(
                "audit", "audit/audit.html", "Audit", "scroll-text", roles=("admin", "operator")
            ),
        ),
    ),
    PageGroup(
        "Settings",
        (
            ConsolePage("security", "security/security.html", "Security", "shield-check"),
            ConsolePage("account", "account/account.html", "Account", "circle-user"),
            ConsolePage(
                "linked_accounts",
                "account/linked_accounts.html",
                "Linked accounts",
                "link",
                feature="providers",
            ),
            ConsolePage(
                "organization", "organization/organization.html", "Organization", "settings"
            ),
            ConsolePage(
                "webhooks",
                "webhooks/webhooks.html",
                "Webhooks",
                "bell",
                roles=("admin", "operator"),
            ),
            ConsolePage("policy", "security/policy.html", "Policy", "scale"),
        ),
    ),
)
# For signed-in users, reachable only by a link.
BY_LINK: Final = (ConsolePage("terminal", "terminal/terminal.html"),)
# For visitors before sign-in.
ENTRANCE: Final = (
    ConsolePage("sign_in", "entrance/sign_in.html"),
    ConsolePage("sign_up", "entrance/sign_up.html"),
    ConsolePage("invitation", "entrance/invitation.html"),
    ConsolePage(
        "email_change_cancel",
        "entrance/email_change_cancel.html",
        path="email-change/cancel",
    ),
    ConsolePage("recovery", "entrance/recovery.html"),
    ConsolePage("recovery_cancel", "entrance/recovery_cancel.html", path="recovery/cancel"),
)


def existing() -> Iterable[ConsolePage]:
    """Return the pages that this installation serves.

    The page of linked accounts exists without providers too, because identities may remain.
    """
    signed_in = (page for group in NAVIGATION for page in group.pages)
    return [
        page
        for page in (*signed_in, *BY_LINK, *ENTRANCE)
        if page.feature != "cache" or _has("cache")
    ]


def navigation() -> list[PageGroup]:
    """Return the navigation's groups with this installation's pages."""
    groups = [
        PageGroup(group.title, tuple(page for page in group.pages if _has(page.feature)))
        for group in NAVIGATION
    ]
    return [group for group in groups if group.pages]


def _has(feature: Feature | None) -> bool:
    if feature == "cache":
        return settings.HAS_CACHE
    return feature is None or bool(settings.OAUTH.providers)
