"""Log lines: for people in development, JSON in production; never a ticket or a secret in them."""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, Final

# A ticket is one long word of base64url; hashes, which are shorter, stay readable.
TICKET_SHAPE: Final = re.compile(r"[A-Za-z0-9_-]{200,}")
REDACTED: Final = "[redacted]"
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure(log_format: str, level: str) -> None:
    """Send all loggers to standard error. log_format: ``console`` or ``json``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else ConsoleLines())
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in ("asyncio",):
        logging.getLogger(name).setLevel(logging.WARNING)


class JsonLines(logging.Formatter):
    """One JSON object a line; what was passed as ``extra`` are its fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "timestamp": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _redacted(json.dumps(line, default=str, ensure_ascii=False))


class ConsoleLines(logging.Formatter):
    """A line that reads well: time, level, what happened, its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and a traceback below it if there is one."""
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        line = (
            f"{_time(record)[11:19]} {record.levelname.lower():7} {record.getMessage():32} {fields}"
        )
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return _redacted(line.rstrip())


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _redacted(line: str) -> str:
    return TICKET_SHAPE.sub(REDACTED, line)
