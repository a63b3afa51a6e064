"""A line for every request, as the other logs write theirs but at a tenth of the cost.

At some thousand requests a second the logging machinery would be a quarter of all work. Lines are
collected and written together, a moment later; what they hold is chosen so that nothing of it is
a secret, and a key that looks like one is blanked as everywhere.
"""

import asyncio
import sys
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from platform_site.lib.logs import REDACTED, SECRET_SHAPE, SECRET_SIGNS

FLUSH_S: Final = 0.05
LINES_AT_ONCE: Final = 200
EVENT: Final = "object_request"
LOGGED_AT: Final = frozenset(("debug", "info"))


class RequestLog:
    """Writes lines to standard error. log_format: ``json`` or ``console``; log_level: the least."""

    def __init__(self, log_format: str, log_level: str) -> None:
        self.is_on = log_level.lower() in LOGGED_AT
        self._head, self._line = (
            (_json_head, _json_line) if log_format == "json" else (_text_head, _text_line)
        )
        self._lines: list[str] = []
        self._begin = ""
        self._timer: asyncio.TimerHandle | None = None

    def write(self, fields: dict[str, Any]) -> None:
        """Note a line, at the time of the first one that is written with it."""
        if not self.is_on:
            return
        if not self._lines:
            self._begin = self._head(datetime.now(UTC).isoformat())
        key = fields.get("key", "")
        if any(sign in key for sign in SECRET_SIGNS):
            fields["key"] = SECRET_SHAPE.sub(REDACTED, key)
        # Made here and not together later: some hundred at once would keep all requests waiting.
        self._lines.append(self._begin + self._line(fields))
        if len(self._lines) >= LINES_AT_ONCE:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def flush(self) -> None:
        """Write what was noted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            sys.stderr.write("".join(lines))
            sys.stderr.flush()


def _json_head(now: str) -> str:
    said = {"event": EVENT, "level": "info", "timestamp": now, "logger": __name__}
    return orjson.dumps(said).decode().removesuffix("}")


def _json_line(fields: dict[str, Any]) -> str:
    return "," + orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE).decode()[1:]


def _text_head(now: str) -> str:
    return f"{now} [info     ] {EVENT} [{__name__}]"


def _text_line(fields: dict[str, Any]) -> str:
    return "".join([f" {name}={value!r}" for name, value in fields.items()]) + "\n"
