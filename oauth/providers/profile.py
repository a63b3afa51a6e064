"""A user's profile at a provider, and memberships in mapped groups."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from common.emails import is_address

MAX_SUBJECT_CHARS: Final = 255


@dataclass(frozen=True, slots=True)
class ProviderTokens:
    """A provider's tokens, stored only if memberships are refreshed later.

    expires_at: of the access token, in Unix seconds; 0 for never.
    """

    access_token: str
    refresh_token: str = ""
    expires_at: int = 0


@dataclass(frozen=True, slots=True)
class Memberships:
    """The mapped groups that a user is in, and those for which the provider gave no answer."""

    held: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def merged_with(self, before: Iterable[str]) -> list[str]:
        """Return the current memberships; an unknown one stays as it was before."""
        kept = set(self.held) | (set(before) & set(self.unknown))
        return sorted(kept)


@dataclass(frozen=True, slots=True)
class Profile:
    """A user's account at a provider, verified by a sign-in there.

    subject: the provider's own id, which never changes and is never reassigned.
    email: '' if there is no usable address. is_verified: by the provider.
    is_private_email: a relay address, created for this service alone.
    domain: the Workspace domain that the account belongs to, as Google states it.
    memberships: None if the provider has no mapped groups.
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
    credentials: ProviderTokens | None = None

    def has_subject(self) -> bool:
        """Return True if the subject can be stored and compared."""
        subject = self.subject
        is_text = subject.isascii() and subject.isprintable() and not subject.isspace()
        return is_text and 0 < len(subject) <= MAX_SUBJECT_CHARS

    def as_json(self) -> dict[str, Any]:
        """Return the profile as ``from_json`` reads it."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the profile that ``as_json`` described."""
        memberships, credentials = value["memberships"], value["credentials"]
        return cls(
            **value
            | {
                "memberships": memberships
                and Memberships(tuple(memberships["held"]), tuple(memberships["unknown"])),
                "credentials": credentials and ProviderTokens(**credentials),
            }
        )


def email_or_blank(value: object) -> str:
    """Return an e-mail address that a provider sent, with its domain in ASCII.

    '' if it is none that mail reaches as it is written.
    """
    if not isinstance(value, str):
        return ""
    local, _, domain = value.rpartition("@")
    address = f"{local}@{_ascii(domain)}"
    return address if is_address(address) else ""


def _ascii(domain: str) -> str:
    """Return a domain as mail is sent to it; '' if another one has the same ASCII form.

    The ``ß`` of a domain becomes ``ss``, for example, another owner's domain.
    """
    if domain.isascii():
        return domain
    try:
        encoded = domain.encode("idna")
        return encoded.decode() if encoded.decode("idna") == domain.lower() else ""
    except UnicodeError:
        return ""


def one_line(value: object, *, max_chars: int) -> str:
    """Return a provider's text on one line, cut to a length; '' if it is not text."""
    if not isinstance(value, str):
        return ""
    printable = "".join(char if char.isprintable() else " " for char in value)
    return " ".join(printable.split())[:max_chars]
