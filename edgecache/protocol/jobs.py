"""Work that the brain has for a worker, which polls for it."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Annotated, ClassVar, Final

from edgecache.protocol.fields import FieldReader, Message
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
    """Where to fetch a blob: a worker's base URL, and a ticket of kind ``replicate``.

    is_guarded: connect to a public address only.
    """

    ALLOWS_UNKNOWN: ClassVar = True
    url: Annotated[str, partial(FieldReader.text, limit=URL_LIMIT)]
    ticket: Annotated[str, partial(FieldReader.text, limit=TICKET_TEXT_LIMIT)]
    is_guarded: Annotated[bool, partial(FieldReader.boolean, default=False)] = False


@dataclass(frozen=True, slots=True)
class Job(Message):
    """Work for a node: drop a blob, verify one, or fetch one from the first source that has it."""

    ALLOWS_UNKNOWN: ClassVar = True
    id: Annotated[int, FieldReader.integer]
    kind: Annotated[JobKind, partial(FieldReader.choice, choices=JobKind)]
    sha256: Annotated[bytes, FieldReader.sha256]
    size: Annotated[int, FieldReader.integer]
    sources: Annotated[
        tuple[JobSource, ...], partial(FieldReader.objects, read=JobSource.take, limit=SOURCE_LIMIT)
    ] = ()


@dataclass(frozen=True, slots=True)
class Jobs(Message):
    """What waits for a node, oldest first. A job comes again until it is done."""

    ALLOWS_UNKNOWN: ClassVar = True
    jobs: Annotated[tuple[Job, ...], partial(FieldReader.objects, read=Job.take, limit=JOB_BATCH)]


@dataclass(frozen=True, slots=True)
class JobDone(Message):
    """How a job ended; error: a short code, or '' for success."""

    id: Annotated[int, FieldReader.integer]
    ok: Annotated[bool, FieldReader.boolean]
    error: Annotated[str, partial(FieldReader.text, limit=ERROR_LIMIT, default="")] = ""


@dataclass(frozen=True, slots=True)
class JobsDone(Message):
    """Jobs whose effect is durable; the brain ignores those that it does not know."""

    jobs: Annotated[
        tuple[JobDone, ...], partial(FieldReader.objects, read=JobDone.take, limit=JOB_BATCH)
    ]
