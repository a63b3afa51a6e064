"""The base of all audit tags, and the tags that belong to no other app."""

from enum import StrEnum
from functools import cache
from typing import Self


class AuditTag(StrEnum):
    """A tag ``source:subject:action`` with the sentence that documents it.

    Each app subclasses it in its ``audit_tags.py``; docs/audit.md is made from the subclasses.
    """

    sentence: str

    def __new__(cls, tag: str, sentence: str) -> Self:
        """Create a member whose value is the tag."""
        member = str.__new__(cls, tag)
        member._value_ = tag
        member.sentence = sentence
        return member


class TrailTag(AuditTag):
    """The tags of the audit trail itself, of any app's denials, and of the keys' first use."""

    PERMISSION_DENY = (
        "api:permission:deny",
        "A caller lacked a permission inside its own organization.",
    )
    CLI_AUDIT_EXPORT = ("cli:audit:export", "An operator exported events of the audit trail.")
    SYSTEM_KEY_SEE = (
        "system:key:see",
        "The platform used a key for the first time.",
    )


@cache
def sentences() -> dict[str, str]:
    """Return the sentence of every tag. Call it once all apps are loaded."""
    return {str(tag): tag.sentence for app in AuditTag.__subclasses__() for tag in app}
