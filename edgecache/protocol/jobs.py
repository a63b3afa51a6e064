"""Work that the brain has for a worker, which asks for it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from edgecache.protocol.fields import Fields, Message
from edgecache.protocol.names import JOB_BATCH

SOURCE_LIMIT: Final = 8
URL_LIMIT: Final = 255
TICKET_TEXT_LIMIT: Final = 512
ERROR_LIMIT: Final = 200


class JobKind(StrEnum):
    """What a node is asked to do."""

    DELETE = "delete"
    REPLICATE = "replicate"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True)
class JobSource(Message):
    """Where to fetch a blob: a worker's base URL, and a ticket of kind ``replicate`` for it."""

    url: str
    ticket: str

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it."""
        return cls(
            url=fields.text("url", limit=URL_LIMIT),
            ticket=fields.text("ticket", limit=TICKET_TEXT_LIMIT),
        )


@dataclass(frozen=True, slots=True)
class Job(Message):
    """Work for a node: drop a blob, verify one, or fetch one from the first source that has it."""

    id: int
    kind: JobKind
    sha256: bytes
    size: int
    sources: tuple[JobSource, ...] = ()

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it."""
        return cls(
            id=fields.integer("id"),
            kind=fields.choice("kind", JobKind),
            sha256=fields.sha256("sha256"),
            size=fields.integer("size"),
            sources=fields.objects("sources", JobSource.read, limit=SOURCE_LIMIT),
        )


@dataclass(frozen=True, slots=True)
class Jobs(Message):
    """What waits for a node, oldest first. A job comes again until it is done."""

    jobs: tuple[Job, ...]

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly."""
        message = cls(fields.objects("jobs", Job.read, limit=JOB_BATCH))
        fields.finish(allow_unknown=True)
        return message


@dataclass(frozen=True, slots=True)
class JobDone(Message):
    """How a job ended; error: a short code, empty when it went well."""

    id: int
    ok: bool
    error: str = ""

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it."""
        found = cls(
            id=fields.integer("id"),
            ok=fields.boolean("ok"),
            error=fields.text("error", limit=ERROR_LIMIT, default=""),
        )
        fields.refuse_unknown()
        return found


@dataclass(frozen=True, slots=True)
class JobsDone(Message):
    """Jobs that have ended, whose effect is durable; the brain ignores those it does not know."""

    jobs: tuple[JobDone, ...]

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly."""
        message = cls(fields.objects("jobs", JobDone.read, limit=JOB_BATCH))
        fields.finish(allow_unknown=False)
        return message
