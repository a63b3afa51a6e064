"""Work that the brain has for a worker, which polls for it."""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from edgecache.protocol.fields import NO_NUL, Answer, Count, Message, Sha256
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


class JobSource(Answer, frozen=True):
    """Where to fetch a blob: a worker's base URL, and a ticket of kind ``replicate``.

    is_guarded: connect to a public address only.
    """

    url: Annotated[str, Meta(max_length=URL_LIMIT)]
    ticket: Annotated[str, Meta(max_length=TICKET_TEXT_LIMIT)]
    is_guarded: bool = False


class Job(Answer, frozen=True):
    """Work for a node: drop a blob, verify one, or fetch one from the first source that has it."""

    id: Count
    kind: JobKind
    sha256: Sha256
    size: Count
    sources: Annotated[tuple[JobSource, ...], Meta(max_length=SOURCE_LIMIT)] = ()


class Jobs(Answer, frozen=True):
    """What waits for a node, oldest first. A job comes again until it is done."""

    jobs: Annotated[tuple[Job, ...], Meta(max_length=JOB_BATCH)]


class JobDone(Message, frozen=True):
    """How a job ended; error: a short code, or '' for success."""

    id: Count
    ok: bool
    error: Annotated[str, Meta(max_length=ERROR_LIMIT, pattern=NO_NUL)] = ""


class JobsDone(Message, frozen=True):
    """Jobs whose effect is durable; the brain ignores those that it does not know."""

    jobs: Annotated[tuple[JobDone, ...], Meta(max_length=JOB_BATCH)]
