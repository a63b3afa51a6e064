"""The base of all errors that the API can return.

One tree: its branches are HTTP statuses, its leaves have a stable ``code`` (docs/errors.md)::

    PlatformError
    ├── InvalidRequest      400  malformed or invalid; ``fields`` names the errors
    │   └── MalformedJson        the body is not JSON
    ├── NotAuthenticated    401  answered with WWW-Authenticate
    │   ├── TokenInvalid
    │   └── TokenExpired
    ├── Forbidden           403  authenticated, but not allowed inside one's own tenant
    │   ├── SecondFactorDue
    │   ├── EmailRequired
    │   └── ApiKeyForbidden
    ├── NotFound            404  absent, or another tenant's, not distinguished
    ├── MethodNotAllowed    405
    ├── NotAcceptable       406
    ├── Conflict            409
    │   └── ChangedSinceRead     the change names an older version
    ├── Gone                410  expired or used up
    ├── PayloadTooLarge     413
    ├── UnsupportedMedia    415
    ├── Unprocessable       422
    ├── TooManyRequests     429  answered with Retry-After
    ├── InternalError       500
    ├── EngineError         502  raised by the engine behind Zonal
    └── Unavailable         503  answered with Retry-After
        ├── Contended
        ├── ControlDatabaseUnavailable
        └── DnsUnavailable

Applications add leaves in their own ``errors.py``; ``common.problems`` renders all.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field; ``field`` is a dotted path into the request body."""

    field: str
    code: str
    message: str

    def as_json(self) -> dict[str, str]:
        """Return the ``errors[]`` entry of a problem document."""
        return {"field": self.field, "code": self.code, "message": self.message}


class PlatformError(Exception):
    """An error with a stable code. detail: shown to the caller, so it contains nothing internal.

    for_operators: what commands show besides; no answer of the API does.
    extra: further members of the problem document (RFC 9457 §3.2), declared in ``members``.
    headers: response headers beyond those of the status.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Something went wrong on our side."
    retry_after_s: int | None = None
    for_operators = ""
    # JSON Schemas of the members of ``extra``, by name, for OpenAPI.
    members: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    # Branches only group: they are not raised, so their codes are not sent.
    is_branch: ClassVar[bool] = False

    def __init_subclass__(cls, *, branch: bool = False) -> None:
        """Mark the class as a branch or a leaf of the tree."""
        super().__init_subclass__()
        cls.is_branch = branch

    def __init__(
        self,
        detail: str = "",
        *,
        fields: Iterable[FieldError] = (),
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.fields = tuple(fields)
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s


class InvalidRequest(PlatformError):
    """The request is well-formed, but a field is missing, unknown or has a wrong value."""

    status = 400
    code = "invalid_request"
    title = "The request is not valid."

    @classmethod
    def for_field(cls, field: str, message: str, *, code: str = "invalid") -> "InvalidRequest":
        """Return the error for one field; ``message`` is a sentence for the caller."""
        return cls(fields=[FieldError(field, code, message)])


class MalformedJson(InvalidRequest):
    """The body is not one JSON object in UTF-8."""

    code = "malformed_json"
    title = "The body is not a JSON object."


class NotAuthenticated(PlatformError):
    """No credentials were sent."""

    status = 401
    code = "not_authenticated"
    title = "Authentication is required."


class TokenInvalid(NotAuthenticated):
    """The bearer token is malformed, of another type, or not signed by us."""

    code = "token_invalid"
    title = "The token is not valid."


class TokenExpired(NotAuthenticated):
    """The bearer token has expired."""

    code = "token_expired"
    title = "The token has expired."


class Forbidden(PlatformError):
    """The caller is known, but may not do this in its own tenant."""

    status = 403
    code = "permission_denied"
    title = "You may not do this."


class SecondFactorDue(Forbidden):
    """The organization requires a second factor that this session has not proven."""

    code = "second_factor_due"
    title = "Your organization requires a second factor."


class EmailRequired(Forbidden):
    """The account lost its unverified address to the mailbox's owner; add and verify another."""

    code = "email_required"
    title = "This account needs another e-mail address."


class ApiKeyForbidden(Forbidden):
    """An API key may use data and read settings; it changes no account, member, key or payment."""

    code = "api_key_forbidden"
    title = "An API key may not do this."


class NotFound(PlatformError):
    """Absent, or another tenant's."""

    status = 404
    code = "not_found"
    title = "There is nothing at this path."


class MethodNotAllowed(PlatformError):
    """The path exists; the method does not."""

    status = 405
    code = "method_not_allowed"
    title = "This path does not support that method."


class NotAcceptable(PlatformError):
    """No representation that the Accept header allows."""

    status = 406
    code = "not_acceptable"
    title = "None of the accepted media types is available."


class Conflict(PlatformError, branch=True):
    """The request conflicts with the current state."""

    status = 409
    code = "conflict"
    title = "The request conflicts with the current state."


class ChangedSinceRead(Conflict):
    """``If-Match`` names another version than the present one; ``errors`` has what differs."""

    code = "changed_since_read"
    title = "This was changed since it was read."


class Gone(PlatformError, branch=True):
    """Expired, used up, or never existed; the response does not say which."""

    status = 410
    code = "gone"
    title = "This can no longer be used."


class PayloadTooLarge(PlatformError):
    """The body is longer than this path accepts."""

    status = 413
    code = "payload_too_large"
    title = "The request is too large."


class UnsupportedMedia(PlatformError):
    """The body has a media type or an encoding that this operation does not accept."""

    status = 415
    code = "unsupported_media_type"
    title = "The body's media type is not supported."


class Unprocessable(PlatformError, branch=True):
    """The request is well-formed, but contradicts an earlier one."""

    status = 422
    code = "unprocessable"
    title = "The request cannot be processed."


class TooManyRequests(PlatformError, branch=True):
    """A rate limit was reached."""

    status = 429
    code = "rate_limited"
    title = "Too many requests."
    retry_after_s = 60


class InternalError(PlatformError):
    """A failure of the platform; logged with the request id."""

    status = 500
    code = "internal_error"
    title = "Something went wrong on our side."


class EngineError(PlatformError):
    """The engine behind Zonal failed."""

    status = 502
    code = "engine_error"
    title = "A backend service failed."


class Unavailable(PlatformError, branch=True):
    """A service that this path needs is temporarily unavailable."""

    status = 503
    code = "unavailable"
    title = "The service is unavailable for the moment."
    # None where something may have been done: clients repeat what has Retry-After.
    retry_after_s: int | None = 2


class Contended(Unavailable):
    """The request was aborted because of a deadlock with another one; it changed nothing."""

    code = "contended"
    title = "The request conflicted with another one. Send it again."
    retry_after_s = 1


class ControlDatabaseUnavailable(Unavailable):
    """The control database does not respond, or takes no writes at the moment."""

    code = "database_unavailable"
    title = "The platform's database is unavailable for the moment."


def every_error() -> list[type[PlatformError]]:
    """Return the leaves of the tree, as far as their modules are imported."""
    return [error for error in _descendants(PlatformError) if not error.is_branch]


def _descendants(error: type[PlatformError]) -> Iterator[type[PlatformError]]:
    for child in error.__subclasses__():
        yield child
        yield from _descendants(child)


class DnsUnavailable(Unavailable):
    """The domain's name servers do not respond."""

    code = "dns_unavailable"
    title = "The domain's name servers are not responding at the moment."
    retry_after_s = 60
