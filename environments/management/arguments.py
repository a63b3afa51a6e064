"""Arguments about organizations that the commands of administrators share."""

from argparse import ArgumentTypeError
from typing import Final

from common.commands import CommandRefused
from environments.models import Organization

# The administrator's name in mails to members.
NAME: Final = "an operator of the platform"


# The same limit as in the admin.
REASON_CHARS: Final = 300


def reason(text: str) -> str:
    """Return a reason as the audit trail stores it.

    Raises ArgumentTypeError for one that is empty, too long, or not printable.
    """
    stripped = text.strip()
    if not 0 < len(stripped) <= REASON_CHARS or not stripped.isprintable():
        raise ArgumentTypeError(f"a reason has 1 to {REASON_CHARS} printable characters")
    return stripped


def organization(organization_id: int) -> Organization:
    """Return an organization. Raises CommandRefused if there is none."""
    found = Organization.objects.filter(pk=organization_id).first()
    if found is None:
        message = f"There is no organization {organization_id}."
        raise CommandRefused("organization_not_found", message)
    return found
