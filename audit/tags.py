"""The base of all audit tags, and the tags that belong to no other app."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Self

# What follows the actor's name in an event's sentence. ``{name}`` is an entry of the event's data,
# ``{email}`` the person whom it affects. A text stands for events that succeeded; a function gets
# the outcome and the data.
Phrase = str | Callable[[str, Mapping[str, Any]], str]


class AuditTag(StrEnum):
    """A tag ``source:subject:action`` with the sentence that documents it.

    phrase: what its events say after the actor's name; '' for those that say the sentence.
    Each app subclasses it in its ``audit_tags.py``; docs/audit.md is made from the subclasses.
    """

    sentence: str
    phrase: Phrase

    def __new__(cls, tag: str, sentence: str, phrase: Phrase = "") -> Self:
        """Create a member whose value is the tag."""
        member = str.__new__(cls, tag)
        member._value_ = tag
        member.sentence = sentence
        member.phrase = phrase
        return member


def by_outcome(**phrases: str) -> Phrase:
    """Return a phrase that depends on the event's outcome alone."""
    return lambda outcome, _: phrases.get(outcome, "")


class TrailTag(AuditTag):
    """The tags of the audit trail itself, of any app's denials, and of the keys' first use."""

    PERMISSION_DENY = (
        "api:permission:deny",
        "A caller lacked a permission inside its own organization.",
        by_outcome(denied="lacked the permission {permission}"),
    )
    CLI_AUDIT_EXPORT = ("cli:audit:export", "An operator exported events of the audit trail.")
    SYSTEM_KEY_SEE = (
        "system:key:see",
        "The platform used a key for the first time.",
    )


@cache
def known() -> dict[str, AuditTag]:
    """Return every tag by its text. Call it once all apps are loaded."""
    return {str(tag): tag for app in AuditTag.__subclasses__() for tag in app}


def sentences() -> dict[str, str]:
    """Return the sentence of every tag. Call it once all apps are loaded."""
    return {tag: each.sentence for tag, each in known().items()}
