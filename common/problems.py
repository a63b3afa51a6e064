"""Problem documents (RFC 9457): the only place where errors become responses."""

import json
import sys
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

import psycopg
import psycopg_pool
import structlog
from cryptography.fernet import InvalidToken
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from procrastinate.exceptions import ConnectorException
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import set_rollback

from common import errors
from common.key_fingerprints import ENCRYPTION, SENTENCE
from common.machine.reasons import reason
from common.pending_migrations import NOT_MIGRATED, is_not_migrated
from common.server_states import CommitLost, is_of_server

CONTENT_TYPE: Final = "application/problem+json"
TYPE_BASE: Final = "urn:zonal:problem:"
# PostgreSQL, appendix A: deadlock_detected, serialization_failure.
DEADLOCKS: Final = frozenset({"40P01", "40001"})
UNKNOWN: Final = (
    "The connection was lost at the end of the change: whether the change was made is unknown. "
    "Check before you send it again."
)

log = structlog.get_logger(__name__)


def document(error: errors.PlatformError, request_id: str) -> dict[str, Any]:
    """Return the problem document of an error."""
    problem: dict[str, Any] = {
        "type": TYPE_BASE + error.code,
        "title": error.title,
        "status": error.status,
        "code": error.code,
        "request_id": request_id,
        **error.extra,
    }
    if error.detail:
        problem["detail"] = error.detail
    if error.fields:
        problem["errors"] = [field.as_json() for field in error.fields]
    return problem


def headers(error: errors.PlatformError) -> dict[str, str]:
    """Return the headers for the error's status."""
    given = dict(error.headers)
    if error.status == HTTPStatus.UNAUTHORIZED and "WWW-Authenticate" not in given:
        given["WWW-Authenticate"] = _challenge(error)
    if error.retry_after_s is not None:
        given["Retry-After"] = str(error.retry_after_s)
    given["Cache-Control"] = "no-store"
    return given


def _challenge(error: errors.PlatformError) -> str:
    """Return the challenge of RFC 6750 §3; it has no error if no credentials were sent."""
    if type(error) is errors.NotAuthenticated:
        return 'Bearer realm="zonal"'
    return f'Bearer realm="zonal", error="invalid_token", error_description="{error.title}"'


def respond(request: HttpRequest, error: errors.PlatformError) -> HttpResponse:
    """Answer with a problem document, outside DRF: middleware, unknown paths, crashes."""
    body = json.dumps(document(error, getattr(request, "request_id", "")))
    return HttpResponse(
        body, status=error.status, content_type=CONTENT_TYPE, headers=headers(error)
    )


def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Render a view's exception (DRF's EXCEPTION_HANDLER); None passes bugs on to ``crashed``."""
    error = translate(exc)
    if error is None:
        return None
    set_rollback()
    request = context["request"]
    response = Response(
        document(error, getattr(request, "request_id", "")),
        status=error.status,
        headers=headers(error),
        content_type=CONTENT_TYPE,
    )
    # Errors are always JSON, even if the client does not accept it: otherwise a 406 could not be
    # sent.
    response.exception = True
    return response


def translate(exc: BaseException) -> errors.PlatformError | None:
    """Return the PlatformError for an exception, None if the exception is a bug."""
    if isinstance(exc, errors.PlatformError):
        return exc
    if isinstance(exc, drf.ValidationError):
        return errors.InvalidRequest(fields=_fields(exc.detail))
    if isinstance(exc, Http404 | drf.NotFound):
        return errors.NotFound()
    if isinstance(exc, RequestDataTooBig):
        return errors.PayloadTooLarge()
    if isinstance(exc, PermissionDenied | drf.PermissionDenied):
        return errors.Forbidden()
    if is_database_unreachable(exc):
        log.warning("control_database_unavailable", error=reason(exc))
        return unavailable(exc)
    if isinstance(exc, InvalidToken):
        log.error("stored_secret_unreadable", message=f"{ENCRYPTION} {SENTENCE}")
        return errors.InternalError()
    if is_not_migrated(exc):
        log.error("database_not_migrated", error=reason(exc), advice=NOT_MIGRATED)
        return errors.ControlDatabaseUnavailable()
    if isinstance(exc, OperationalError) and _sqlstate(exc) in DEADLOCKS:
        # The lock order should prevent deadlocks; if one happens, the caller can repeat the
        # request.
        log.warning("contended", error=reason(exc))
        return errors.Contended()
    return _translate_drf(exc) if isinstance(exc, drf.APIException) else None


def unavailable(exc: BaseException) -> errors.ControlDatabaseUnavailable:
    """Return the error for an exception that ``is_database_unreachable``.

    Without Retry-After if the outcome is unknown: clients take that header for "nothing was done".
    """
    if not isinstance(exc, CommitLost):
        return errors.ControlDatabaseUnavailable()
    error = errors.ControlDatabaseUnavailable(UNKNOWN)
    error.retry_after_s = None
    return error


def is_database_unreachable(exc: BaseException) -> bool:
    """True if the control database is unreachable, or its server cannot do a statement now.

    False if it refused this statement.
    """
    if isinstance(exc, psycopg_pool.PoolTimeout | psycopg_pool.PoolClosed):
        return True
    if not isinstance(exc, DatabaseError | InterfaceError | ConnectorException):
        return False
    state = _sqlstate(exc)
    if state is not None:
        return is_of_server(state)
    # A lost or refused connection has no SQLSTATE. The task queue wraps exceptions of its own.
    if isinstance(exc, ConnectorException):
        return isinstance(exc.__cause__, psycopg.OperationalError | psycopg.InterfaceError)
    return isinstance(exc, OperationalError | InterfaceError)


def _sqlstate(exc: BaseException) -> str | None:
    found: str | None = getattr(exc.__cause__, "sqlstate", None)
    return found


def _translate_drf(exc: drf.APIException) -> errors.PlatformError | None:
    kinds: dict[type[drf.APIException], type[errors.PlatformError]] = {
        drf.ParseError: errors.MalformedJson,
        drf.MethodNotAllowed: errors.MethodNotAllowed,
        drf.NotAcceptable: errors.NotAcceptable,
        drf.NotAuthenticated: errors.NotAuthenticated,
        drf.AuthenticationFailed: errors.TokenInvalid,
    }
    if isinstance(exc, drf.UnsupportedMediaType):
        return errors.UnsupportedMedia("Send application/json.")
    kind = kinds.get(type(exc))
    return kind() if kind else None


def _fields(detail: Any, path: str = "") -> Iterator[errors.FieldError]:
    """Flatten DRF's nested details into dotted paths."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            here = path if key == "non_field_errors" else f"{path}.{key}".lstrip(".")
            yield from _fields(value, here)
    elif isinstance(detail, list | tuple):
        for index, value in enumerate(detail):
            yield from _fields(value, path if isinstance(value, str) else f"{path}.{index}")
    else:
        yield errors.FieldError(path, getattr(detail, "code", None) or "invalid", str(detail))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown path (Django's handler404); one of the API says where its paths are."""
    is_api = request.path_info == "/v1" or request.path_info.startswith("/v1/")
    detail = "The operations are listed at /v1/docs." if is_api else ""
    return respond(request, errors.NotFound(detail=detail))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django refuses (handler400), such as one with a wrong Host."""
    return respond(request, translate(exception) or errors.InvalidRequest())


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer PermissionDenied outside DRF (handler403)."""
    return respond(request, errors.Forbidden())


def crashed(request: HttpRequest) -> HttpResponse:
    """Answer an unhandled exception (handler500), never with a stack trace."""
    exc = sys.exc_info()[1]
    error = translate(exc) if exc is not None else None
    return respond(request, error or errors.InternalError())
