"""Documents that are written from the code, so that they cannot lie: settings and errors."""

import inspect
import re
from typing import Final

from edgecache import conf as cache_conf
from edgecache.brain import conf as brain_conf
from platform_site import settings
from platform_site.lib.errors import PlatformError, every_error
from platform_site.settings_table import Row, rows

SETTINGS_HEAD: Final = """# Settings

Every setting is an environment variable. A secret may also come from a file: `NAME_FILE` names it.
What is unset falls back to `$ZDATA_DIR/runtime.env`, which `make run` writes (mode 0600), then to
the default. A wrong value ends the process at start with a sentence that names the variable.
Written by `manage.py writedocs`; a test compares.

| variable | kind | default | unit | meaning |
|---|---|---|---|---|
"""

ERRORS_HEAD: Final = """# Errors

Every refusal is `application/problem+json` (RFC 9457): `type`, `title`, `status`, `code`,
`request_id`, often `detail`, and `errors[]` (`field`, `code`, `message`) where fields are wrong.
`code` is stable; texts may change. 401 carries `WWW-Authenticate`, 429 and 503 `Retry-After`.
Written by `manage.py writedocs`; a test compares.

| status | code | meaning |
|---|---|---|
"""


def settings_page() -> str:
    """Return docs/settings.md."""
    lines = {
        row.name: f"| `{row.name}` | {row.kind} | {row.default} | | {row.help} |"
        for row in settings.ENV.declared.values()
    }
    for table in (*cache_conf.TABLES, *brain_conf.TABLES):
        for row in rows(table).values():
            lines |= {name: _settings_line(name, row) for name in row.names}
    ordered = (lines[name] for name in sorted(lines, key=lambda name: name.lstrip("Z")))
    return SETTINGS_HEAD + "\n".join(ordered) + "\n"


def _settings_line(name: str, row: Row) -> str:
    return f"| `{name}` | {row.kind} | {row.shown_default} | {row.unit} | {row.sentence} |"


def errors_page() -> str:
    """Return docs/errors.md."""
    kinds = {kind.code: kind for kind in every_error()}
    rows = (
        f"| {kind.status} | `{kind.code}` | {_meaning(kind)} |"
        for kind in sorted(kinds.values(), key=lambda kind: (kind.status, kind.code))
    )
    return ERRORS_HEAD + "\n".join(rows) + "\n"


def _meaning(kind: type[PlatformError]) -> str:
    text = inspect.getdoc(kind) or ""
    return re.sub(r"\s+", " ", text.replace("``", "`")).strip()
