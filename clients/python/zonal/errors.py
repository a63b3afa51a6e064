"""What the client raises.

ZonalError
├── ConnectionFailedError      no answer: refused, timed out, cut
├── StreamCutError             a stream of rows ended before its end
├── UnexpectedAnswerError      an answer that is none of the platform's API
├── UnreadableAnswerError      an answer that Python's values cannot hold
├── SecondFactorRequiredError  a sign-in waits for a code, and nothing was there to ask for it
├── EnrolmentRequiredError     the organization requires a second factor that the user lacks
└── ProblemError               the platform refused, with a code
    ├── SqlError               PostgreSQL refused a statement
    ├── AuthenticationError    401: sign in again
    ├── PermissionDeniedError  403
    ├── NotFoundError          404, 410
    ├── ConflictError          409
    ├── RateLimitError         429
    └── ServerError            5xx
"""

import json
import re
from html import unescape
from typing import Any, Optional

import httpx


class ZonalError(Exception):
    """Base of all errors of this package."""


class ConnectionFailedError(ZonalError):
    """The platform did not answer; whether the request had an effect is unknown."""


class StreamCutError(ZonalError):
    """A stream of rows ended without its end; rows are missing."""


class UnexpectedAnswerError(ZonalError):
    """A successful answer that is not what the API answers: is the URL the platform's?"""


class UnreadableAnswerError(ZonalError):
    """A successful answer that Python's values cannot hold; do not repeat the request.

    It was carried out, except that of a stream's statement this is unknown.
    """


class SecondFactorRequiredError(ZonalError):
    """The sign-in needs a second factor; methods: the names of those that the user has."""

    def __init__(self, methods: list[str]) -> None:
        """Say how to go on."""
        super().__init__(
            f"A second factor is required ({', '.join(methods)}): pass `second_factor`."
        )
        self.methods = methods


class EnrolmentRequiredError(ZonalError):
    """The organization requires a second factor: set one up in the console."""


class ProblemError(ZonalError):
    """A refusal of the platform's, as its problem document describes it.

    code: stable, listed in the platform's docs/errors.md; the object API has S3's, such as
    ``NoSuchKey``; ``http_502`` and the like if something in front of the platform answered. body:
    the whole document.
    """

    def __init__(
        self, status: int, body: dict[str, Any], *, retry_after_s: Optional[float] = None
    ) -> None:
        """Read a problem document."""
        self.status = status
        self.body = body
        self.code = str(body.get("code") or f"http_{status}")
        self.title = str(body.get("title") or "")
        self.detail = str(body.get("detail") or "")
        self.request_id = str(body.get("request_id") or "")
        self.retry_after_s = retry_after_s
        super().__init__(self._text())

    @property
    def errors(self) -> list[dict[str, str]]:
        """The wrong fields of a request: ``field``, ``code`` and ``message`` of each."""
        return list(self.body.get("errors") or [])

    @property
    def is_retryable(self) -> bool:
        """True if the same request may succeed later and had no effect so far."""
        return self.body.get("retryable") is True or self.status == 429

    def _text(self) -> str:
        wrong = "; ".join(f"{each.get('field')}: {each.get('message')}" for each in self.errors)
        said = " ".join(part for part in (self.title, self.detail, wrong) if part)
        named = f"{self.status} {self.code}"
        traced = f" (request {self.request_id})" if self.request_id else ""
        return f"{named}: {said}{traced}" if said else f"{named}{traced}"


class SqlError(ProblemError):
    """PostgreSQL's error; line and column are those of the text that was sent."""

    @property
    def sqlstate(self) -> str:
        """PostgreSQL's code, such as ``42P01``."""
        return str(self.body.get("sqlstate") or "")

    @property
    def hint(self) -> str:
        """PostgreSQL's hint, or nothing."""
        return str(self.body.get("hint") or "")

    @property
    def line(self) -> Optional[int]:
        """The line of the error, from 1."""
        return self.body.get("line")

    @property
    def column(self) -> Optional[int]:
        """The column of the error, from 1."""
        return self.body.get("column")


class AuthenticationError(ProblemError):
    """The token or the credentials are not accepted (401)."""


class PermissionDeniedError(ProblemError):
    """The caller may not do this (403)."""


class NotFoundError(ProblemError):
    """There is nothing of this name that the caller may see (404, 410)."""


class ConflictError(ProblemError):
    """The present state forbids it (409)."""


class RateLimitError(ProblemError):
    """Too many requests (429); retry_after_s: when to come back."""


class ServerError(ProblemError):
    """The platform, or something in front of it, failed (5xx)."""


BY_STATUS: dict[int, type[ProblemError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: NotFoundError,
    429: RateLimitError,
}


def problem(
    status: int, body: dict[str, Any], *, retry_after_s: Optional[float] = None
) -> ProblemError:
    """Return the error of a problem document."""
    kind = BY_STATUS.get(status, ServerError if status >= 500 else ProblemError)
    if body.get("code") == "sql_error":
        kind = SqlError
    return kind(status, body, retry_after_s=retry_after_s)


def problem_of(response: httpx.Response) -> ProblemError:
    """Return the error of a response that is read and no success."""
    try:
        body = json.loads(response.content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = _of_object_api(response) or {"title": response.reason_phrase}
    return problem(response.status_code, body, retry_after_s=_retry_after_s(response))


def _of_object_api(response: httpx.Response) -> dict[str, Any]:
    """Return code and sentence of S3's XML, such as NoSuchKey; {} if it is something else."""
    if "xml" not in response.headers.get("Content-Type", ""):
        return {}
    found = re.search(r"<Code>(\w+)</Code>\s*<Message>([^<]*)</Message>", response.text)
    return {"code": found[1], "title": unescape(found[2])} if found else {}


def _retry_after_s(response: httpx.Response) -> Optional[float]:
    """Return the header in seconds; the platform sends no dates."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None
