"""What may be under each key, by what was answered."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.edgecache.brain.s3.raw import md5

KEYS = ("a/1", "a/2", "a/3", "b/1", "b/2", "c")


@dataclass(frozen=True)
class Version:
    """Bytes with their ETag; "" if the answer with it was lost."""

    body: bytes = field(repr=False)
    etag: str

    @property
    def sha256(self) -> str:
        """Return the name of its files."""
        return hashlib.sha256(self.body).hexdigest()

    def has(self, etag: str) -> bool:
        """Return True if this may be its ETag."""
        return self.etag in {"", etag}


# None: the object does not exist.
State = Version | None
States = dict[str, frozenset[State]]


def version_of(body: bytes) -> Version:
    """Return the version that a plain PUT writes."""
    return Version(body, f'"{md5(body).hex()}"')


def version_of_parts(parts: Iterable[bytes]) -> Version:
    """Return the version that a multipart upload writes."""
    found = list(parts)
    digest = md5(b"".join(md5(part) for part in found)).hex()
    return Version(b"".join(found), f'"{digest}-{len(found)}"')


@dataclass
class Upload:
    """An unfinished multipart upload. parts: acknowledged ones.

    is_unsure: a completion failed, so it may be complete; is_damaged: a part's file was altered.
    """

    key: str
    id: str
    parts: dict[int, bytes] = field(default_factory=dict, repr=False)
    is_unsure: bool = False
    is_damaged: bool = False

    @property
    def version(self) -> Version:
        """Return what it writes when it is completed."""
        return version_of_parts(self.parts[number] for number in sorted(self.parts))


@dataclass
class Model:
    """The states of every key that the answers so far allow.

    damaged: names of bytes whose durable file was altered: they may be unavailable, never wrong.
    kept: by key and id the versions whose writes were acknowledged, and delete markers (None), and
    what each may be. gone: ids of those that may be deleted. ages: the number of the step that made
    a version. lost: what writes without an answer, or without its id, may have written. ever: each
    key's earlier states.
    """

    states: States = field(default_factory=lambda: dict.fromkeys(KEYS, frozenset({None})))
    uploads: list[Upload] = field(default_factory=list)
    damaged: set[str] = field(default_factory=set)
    kept: dict[tuple[str, str], frozenset[State]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    ages: dict[str, int] = field(default_factory=dict)
    lost: States = field(default_factory=lambda: dict.fromkeys(KEYS, frozenset()))
    ever: States = field(default_factory=lambda: dict.fromkeys(KEYS, frozenset()))

    def is_damaged(self, states: Iterable[State]) -> bool:
        """Return True if one of these states may be unavailable."""
        return any(state is not None and state.sha256 in self.damaged for state in states)
