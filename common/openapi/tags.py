"""The tags of the OpenAPI document, in their order."""

from typing import Any, Final

TAGS: Final[dict[str, str]] = {
    "Sign in": "Sign up, log in, refresh and end sessions, switch the environment.",
    "Sign in with a provider": "Google, GitHub, Discord and Apple accounts.",
    "Second factor": "Set up and use TOTP, SMS, e-mail codes, passkeys and backup codes.",
    "Recovery": "Get back into an account without its password or its second factor.",
    "Account": "The caller's own password, e-mail address and sessions.",
    "Members": "The people of an organization and their roles.",
    "Invitations": "Invite people into an organization.",
    "Domains": "E-mail domains that belong to an organization.",
    "API keys": "Long-lived keys with which programs reach one environment.",
    "Webhooks": "What happens, sent to URLs of your own as it does.",
    "Organization": "The organization itself.",
    "Organization policy": "What an organization requires of its members' second factors.",
    "Audit trail": "What happened in an organization, and who did it.",
    "Environments": "Separate places for data: `live`, `sandbox` and those that you add.",
    "SQL": "Queries in the environment's own PostgreSQL database.",
    "Cache": "The state of the edge cache, its figures, and purges.",
    "Buckets": "Buckets, their origins and hosts, and the access keys of the object API.",
    "Objects": "Browse and delete objects; URLs to read and write one without an access key.",
    "Cache nodes": "The workers that store and serve objects.",
    "Billing": "Credits, usage and what it cost; earnings of own nodes and their statements.",
    "Payouts": "How an operator is paid, and its payouts.",
}
# The first tag of each chapter.
_CHAPTERS: Final = {
    "Sign in": "Accounts",
    "Members": "Your organization",
    "Environments": "Data",
    "Cache": "Files",
    "Billing": "Money",
}


def described() -> list[dict[str, str]]:
    """Return the document's ``tags``, in the order in which they are shown."""
    return [{"name": name, "description": text} for name, text in TAGS.items()]


def chapters() -> list[dict[str, Any]]:
    """Return the document's ``x-tagGroups``; each tag belongs to one group."""
    found: list[dict[str, Any]] = []
    for tag in TAGS:
        if tag in _CHAPTERS:
            found.append({"name": _CHAPTERS[tag], "tags": []})
        found[-1]["tags"].append(tag)
    return found
