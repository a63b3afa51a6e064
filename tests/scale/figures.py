"""The figures of a run, and their page docs/scaling-figures.md, which only a whole run writes."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "scaling-figures.md"
HEAD: Final = """\
# Figures of scale

What `make test-scale` measured, written by the tests after a run in which none failed.
[Scale](scaling.md) has the configuration.
"""
PROGRAMS: Final = {
    "PostgreSQL": ("/usr/lib/postgresql/15/bin/postgres", "--version"),
    "Patroni": ("patroni", "--version"),
    "etcd": ("etcd", "--version"),
    "HAProxy": ("haproxy", "-v"),
    "PgBouncer": ("pgbouncer", "--version"),
    "Ceph": ("ceph", "--version"),
}
VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?")
PATH: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


@dataclass
class Figures:
    """Rows of what was measured, by the title of their table.

    modules: the files whose tests were run. is_whole: whether no test was left out.
    """

    rows: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    is_whole: bool = True

    def add(self, title: str, what: str, promised: str, measured: str) -> None:
        """Add a row to a table. promised: "" if nothing is."""
        self.rows.setdefault(title, []).append((what, promised, measured))

    def tables(self) -> str:
        """Return the tables as Markdown."""
        parts = []
        for title, rows in self.rows.items():
            lines = [f"| {what} | {promised} | {measured} |" for what, promised, measured in rows]
            head = ["| what | promised | measured |", "|---|---|---|"]
            parts.append("\n".join([f"\n## {title}\n", *head, *lines, ""]))
        return "".join(parts)

    def write(self) -> None:
        """Write the page, unless a module or a test was left out."""
        everything = {path.name for path in Path(__file__).parent.glob("test_*.py")}
        if self.is_whole and self.modules >= everything:
            PAGE.write_text(f"{HEAD}\n{_machine()}\n{self.tables()}")


FIGURES: Final = Figures()


def _machine() -> str:
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    versions = [f"{name} {version}" for name in PROGRAMS if (version := _version(name))]
    return (
        f"{datetime.now(UTC):%d %B %Y}, {os.cpu_count()} cores and {memory_gib:.0f} GiB of memory"
        f" for everything. {', '.join(versions)}."
    )


def _version(name: str) -> str:
    command, *words = PROGRAMS[name]
    program = shutil.which(command, path=PATH)
    if program is None:
        return ""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    found = VERSION.search(done.stdout + done.stderr)
    return found[0] if found else ""
