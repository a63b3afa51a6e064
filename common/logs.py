"""Structured logs: one line per event, with secrets redacted."""

import json
import logging
import logging.config
import re
import sys
from collections.abc import Callable, MutableMapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import orjson
import structlog

REDACTED: Final = "[redacted]"

# Names of values that are always secrets.
SECRET_NAME: Final = re.compile(
    r"password|secret|token|authorization|cookie|credential|seed|api_?key|^code$|otp|dsn",
    re.IGNORECASE,
)
# Patterns of secrets in free text: tokens (a JWT starts with base64 of '{"'), API keys, passwords
# in URLs, and signatures, also of a URL that is encoded as a part of another one.
SECRET_SHAPE: Final = re.compile(
    r"eyJ[\w-]+\.[\w-]+\.[\w-]*|\w+_dev_[0-9a-f]{64}|zk_[a-z]+_\w+|(?<=://)([^\s:/@]*):[^\s@/]+(?=@)"
    r"|(?<=ignature)(?:=|%(?:25)*3[Dd])[\w+/%-]+"
)
# A part of each of these patterns, searched first because hardly any text contains it.
SECRET_SIGNS: Final = ("eyJ", "_dev_", "zk_", "://", "ignature")

Event = MutableMapping[str, Any]


def logging_config(fmt: str, level: str) -> None:
    """Return the configuration for structlog and the standard library's loggers.

    fmt: ``json`` or ``console``. level: a standard level's name, in any case.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    renderer = _renderer(fmt)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(_stdlib(shared, renderer, level.upper()))


def line_logger(name: str, fmt: str, level: str) -> structlog.typing.FilteringBoundLogger:
    """Return a logger that writes directly to standard error, for the log line of each request.

    Its lines are redacted and look like all others; it only skips the standard library's records,
    which cost several times as much as the line.
    """
    return structlog.wrap_logger(  # type: ignore[no-any-return]  # its wrapper_class below
        structlog.BytesLogger(sys.stderr.buffer, name=name),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            redact,
            _renderer(fmt),
            _encode,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level.lower()),
    )


def _encode(_logger: Any, _method: str, line: Any) -> bytes:
    encoded: bytes = line.encode(errors="backslashreplace")
    return encoded


def _renderer(fmt: str) -> Any:
    if fmt == "json":
        return structlog.processors.JSONRenderer(serializer=_as_json)
    return structlog.dev.ConsoleRenderer(colors=False)


def _stdlib(shared: list[Any], renderer: Any, level: str) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    renderer,
                ],
            }
        },
        "filters": {"drop_unavailable": {"()": DropUnavailable}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django logs a warning for every error response; the request's line already has the
            # status.
            "django.request": {"level": "ERROR", "filters": ["drop_unavailable"]},
            "django.security.DisallowedHost": {"level": "ERROR"},
            "procrastinate": {"level": "WARNING"},
            # Why a pool has no connection; a request only waits in vain.
            "psycopg.pool": {"level": "WARNING"},
        },
    }


class DropUnavailable(logging.Filter):
    """Drops Django's log line for each 503, whose reason is logged by the code that answers it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for a response of 503."""
        return getattr(record, "status_code", None) != HTTPStatus.SERVICE_UNAVAILABLE


def redact(_logger: Any, _method: str, event: Event) -> Event:
    """Redact values with a secret's name or pattern (a structlog processor)."""
    for name, value in event.items():
        if _is_secret_name(name):
            event[name] = REDACTED
        elif isinstance(value, str) and any(sign in value for sign in SECRET_SIGNS):
            event[name] = SECRET_SHAPE.sub(REDACTED, value)
    return event


@lru_cache(maxsize=1024)
def _is_secret_name(name: str) -> bool:
    return name != "event" and SECRET_NAME.search(name) is not None


def _as_json(event: Event, default: Callable[[Any], Any], **_options: Any) -> str:
    try:
        return orjson.dumps(event, default=default).decode()
    except TypeError:
        # Values from a request may be invalid UTF-8 or numbers of any length.
        return json.dumps(event, default=default)
