"""The mail templates: one table, each template with a text and an HTML form; links in mails.

The files are ``templates/mail/<folder>/<name>.txt`` and ``.html``. A template requires exactly the
fields of its row, so that a missing field raises an error at the caller instead of leaving a gap in
a mail.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args
from urllib.parse import urlencode

from django.conf import settings
from django.template.loader import render_to_string

from common.names import BIDI_CONTROLS, BIDI_ISOLATES, BREAKING

Scalar = str | int | bool | None
Notice = Literal[
    "password_changed",
    "email_changed",
    "email_change_started",
    "roles_changed",
    "account_disabled",
    "account_enabled",
    "account_removed",
    "address_moved",
    "factor_added",
    "factor_replaced",
    "factor_removed",
    "factors_reset",
    "backup_code_used",
    "backup_codes_regenerated",
    "trusted_device_added",
    "sessions_revoked_reuse",
    "recovery_started",
    "recovery_completed",
    "recovery_questions_changed",
    "access_key_created",
    "api_key_created",
    "new_device",
    "webhook_disabled",
    "identity_linked",
    "identity_unlinked",
    "payout_method_changed",
    "credits_ran_out",
    "service_stops_soon",
    "service_stopped",
    "spend_cap_near",
    "spend_cap_reached",
    "node_quarantined",
    "earnings_forfeited",
    "appeal_decided",
    "organization_deletion_requested",
    "organization_deletion_cancelled",
    "organization_deleted",
    "organization_exported",
]
NOTICES: Final[frozenset[str]] = frozenset(get_args(Notice))
# What `notices.notify` adds to each notice, and the optional fields of all of them.
NOTICE_FIELDS: Final = frozenset({"account", "at", "security_link"})
CIRCUMSTANCES: Final = frozenset({"address", "agent"})
MAX_SUBJECT_CHARS: Final = 150


@dataclass(frozen=True, slots=True)
class Template:
    """A row of the table; ``subject`` may contain fields in braces."""

    subject: str
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MailContent:
    """A mail without its recipient."""

    subject: str
    text: str
    html: str


def _notice(subject: str, *required: str, optional: tuple[str, ...] = ()) -> Template:
    return Template(
        subject, NOTICE_FIELDS | frozenset(required), CIRCUMSTANCES | frozenset(optional)
    )


# The folder of each template's files, below templates/mail.
FOLDERS: Final[Mapping[str, Mapping[str, Template]]] = {
    "account": {
        "password_changed": _notice("Your password was changed"),
        "email_changed": _notice("Your e-mail address was changed"),
        "email_change_started": _notice(
            "A change of your e-mail address was requested", "new", "cancel_link"
        ),
        "email_change_conflict": Template(
            "This address already has an account", optional=frozenset({"link"})
        ),
        "email_verification": Template(
            "Confirm your e-mail address", frozenset({"code", "hours"}), frozenset({"link"})
        ),
        "signup_link": Template("Finish signing up", frozenset({"link", "hours"})),
        "address_moved": _notice("Another account had your address", "days"),
        "roles_changed": _notice("Your roles were changed", "roles", optional=("by", "created")),
        "account_disabled": _notice("Your account was disabled", optional=("by", "created")),
        "account_enabled": _notice("Your account was enabled", optional=("by",)),
        "account_removed": _notice("Your account was removed", optional=("by", "created")),
    },
    "sign_in": {
        # purpose continues "Your code", for example "to sign in".
        "email_code": Template("Your code", frozenset({"code", "purpose", "minutes"})),
        "new_device": _notice(
            "Your account is used from a new device", "environment", "sessions_link"
        ),
        "sessions_revoked_reuse": _notice("You were signed out for your safety"),
        "identity_linked": _notice("A sign-in method was linked", "provider"),
        "identity_unlinked": _notice("A sign-in method was unlinked", "provider"),
    },
    "second_factor": {
        "factor_added": _notice("A second factor was added", "method"),
        "factor_replaced": _notice("A second factor was replaced", "method"),
        "factor_removed": _notice("A second factor was removed", "method"),
        "factors_reset": _notice("Your second factors were reset", optional=("by", "reason")),
        "backup_code_used": _notice("A backup code was used", "remaining"),
        "backup_codes_regenerated": _notice("Your backup codes were replaced"),
        "trusted_device_added": _notice("A trusted device was added", "device"),
    },
    "recovery": {
        "recovery_started": _notice(
            "Recovery of your account was started",
            optional=("purpose", "effective_at", "cancel_link", "cancel_token"),
        ),
        "recovery_completed": _notice("Your account was recovered", optional=("purpose",)),
        "recovery_questions_changed": _notice("Your security questions were changed"),
        "recovery_token": Template(
            "Recover your account", frozenset({"token", "minutes"}), frozenset({"link"})
        ),
    },
    "organization": {
        "invitation": Template(
            "Join {organization}", frozenset({"link", "organization"}), frozenset({"days", "by"})
        ),
        "invitation_conflict": Template(
            "You are invited to {organization}, but already have an account",
            frozenset({"organization"}),
            frozenset({"link", "by"}),
        ),
        "access_key_created": _notice(
            "An S3 access key was created", "name", "environment", "access"
        ),
        "api_key_created": _notice("An API key was created", "name", "environment", "role"),
        "webhook_disabled": _notice("A webhook was switched off", "host", "reason"),
        "organization_deletion_requested": _notice(
            "The deletion of your organization was requested", "organization", "due_at", "by"
        ),
        "organization_deletion_cancelled": _notice(
            "The deletion of your organization was cancelled", "organization", "by"
        ),
        "organization_exported": _notice(
            "An export of your organization was requested", "organization", "by"
        ),
        "organization_deleted": _notice("Your organization is deleted", "organization"),
    },
    "billing": {
        "payout_method_changed": _notice(
            "The payout method of your organization was changed", "method", "usable_from"
        ),
        "credits_ran_out": _notice("Your organization has no credits left", "stops_at"),
        "service_stops_soon": _notice("Nodes of other operators will stop serving you", "stops_at"),
        "service_stopped": _notice("Nodes of other operators have stopped serving you"),
        "spend_cap_near": _notice("80 % of your spend cap is used", "cap", "currency"),
        "spend_cap_reached": _notice("Your spend cap is reached", "cap", "currency"),
        "node_quarantined": _notice("A cache node of yours was quarantined", "node", "reason"),
        "earnings_forfeited": _notice(
            "Earnings of a cache node were forfeited", "node", "credits", "reason"
        ),
        "appeal_decided": _notice(
            "Your appeal was decided", "node", "decision", "credits", "reason"
        ),
    },
}
TEMPLATES: Final[Mapping[str, Template]] = {
    name: template for templates in FOLDERS.values() for name, template in templates.items()
}
_PATHS: Final = {
    name: f"mail/{folder}/{name}" for folder, templates in FOLDERS.items() for name in templates
}


def check(name: str, context: Mapping[str, Scalar]) -> None:
    """Refuse a context that the template cannot be rendered with.

    Raises ValueError for an unknown name, a missing or unknown field, a value that is not plain,
    and a link that is not http(s), which an attacker could use for phishing in the platform's
    mails.
    """
    template = TEMPLATES.get(name)
    if template is None:
        raise ValueError(f"There is no mail template {name}.")
    given = frozenset(context)
    wrong = (template.required - given) | (given - template.required - template.optional)
    if wrong:
        raise ValueError(f"{name} has missing or unknown fields: {', '.join(sorted(wrong))}.")
    for field, value in context.items():
        if not isinstance(value, Scalar):
            raise ValueError(f"{name}: {field} is not a plain value.")  # noqa: TRY004 - one kind of refusal
        if field.endswith("link") and value and not _is_web(value):
            raise ValueError(f"{name}: {field} is not an http link.")


def compose(name: str, context: Mapping[str, Scalar]) -> MailContent:
    """Render a mail; every value is put on one line, and escaped in the HTML form."""
    values = {
        field: single_line(value) if isinstance(value, str) else value
        for field, value in context.items()
    }
    service = settings.SERVICE_NAME.capitalize()
    title = TEMPLATES[name].subject.format_map(values)
    subject = single_line(f"{title} – {service}")[:MAX_SUBJECT_CHARS]
    values |= {"service": service, "subject": subject}
    return MailContent(
        subject=subject,
        text=render_to_string(f"{_PATHS[name]}.txt", values).strip() + "\n",
        html=render_to_string(f"{_PATHS[name]}.html", values),
    )


def single_line(text: str) -> str:
    """Return the text without line breaks, control characters and bidirectional controls.

    A line break would end a header, or make a user's text look like the platform's own.
    """
    kept = (
        " " if unicodedata.category(char) in BREAKING else char
        for char in text
        if char not in BIDI_CONTROLS | BIDI_ISOLATES
    )
    return " ".join("".join(kept).split())


def _is_web(value: Scalar) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://"))


def console_link(page: str, **secrets: str) -> str:
    """Return the URL of a console page.

    secrets: tokens and codes, put behind the ``#``: a browser never sends that part, so they appear
    in no server log and no Referer. The page posts them when the user confirms.
    """
    fragment = f"#{urlencode(secrets)}" if secrets else ""
    return f"{settings.PUBLIC_URL}/console/{page}{fragment}"
