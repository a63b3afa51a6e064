"""What a provider has vouched for: who somebody is there, and in which of our groups."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from platform_site.lib.emails import is_address

MAX_SUBJECT_CHARS: Final = 255


@dataclass(frozen=True, slots=True)
class Credentials:
    """A provider's tokens, kept only where memberships have to be asked for again.

    expires_at: of the access token, in Unix seconds; 0 for never.
    """

    access_token: str
    refresh_token: str = ""
    expires_at: int = 0


@dataclass(frozen=True, slots=True)
class Memberships:
    """Which of the mapped groups somebody is in; about the unknown ones the provider was silent."""

    held: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def over(self, before: Iterable[str]) -> list[str]:
        """Give the memberships that hold now: silence changes nothing."""
        kept = set(self.held) | (set(before) & set(self.unknown))
        return sorted(kept)


@dataclass(frozen=True, slots=True)
class Profile:
    """Somebody, proven at a provider.

    subject: the provider's own id, which never changes and is never given to somebody else.
    email: '' where there is none that could be written to. is_verified: by the provider.
    is_private_email: a relay's address, made for this service alone.
    domain: the Workspace domain that Google says the account belongs to.
    memberships: None where the provider has no mapped groups.
    """

    provider: str
    subject: str
    email: str = ""
    is_verified: bool = False
    is_private_email: bool = False
    username: str = ""
    name: str = ""
    domain: str = ""
    memberships: Memberships | None = None
    credentials: Credentials | None = None

    def has_subject(self) -> bool:
        """Say whether there is an id to know somebody by."""
        subject = self.subject
        is_text = subject.isascii() and subject.isprintable() and not subject.isspace()
        return is_text and 0 < len(subject) <= MAX_SUBJECT_CHARS

    def as_json(self) -> dict[str, Any]:
        """Give what ``from_json`` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Give the profile of a sealed row."""
        memberships, credentials = value["memberships"], value["credentials"]
        return cls(
            **value
            | {
                "memberships": memberships
                and Memberships(tuple(memberships["held"]), tuple(memberships["unknown"])),
                "credentials": credentials and Credentials(**credentials),
            }
        )


def address(value: object) -> str:
    """Give an e-mail address as a provider told it, '' for what is none."""
    return value if isinstance(value, str) and is_address(value) else ""


def one_line(value: object, *, limit: int) -> str:
    """Give a text of a provider's on one line, cut to a length; '' for what is none."""
    if not isinstance(value, str):
        return ""
    return " ".join("".join(char if char.isprintable() else " " for char in value).split())[:limit]
