"""Write zonal/_sync from zonal/_async, word by word; waiting.py is written by hand in both."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent.parent / "zonal"
RUFF: Final = str(Path(sys.executable).with_name("ruff"))
BY_HAND: Final = frozenset({"__init__.py", "waiting.py"})
WORDS: Final = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bAwaitable, (?=Callable)", ""),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"__a(enter|exit|iter)__", r"__\1__"),
    (r"\ba(close|read|iter_bytes|iter_raw)\(", r"\1("),
    (r"\b_async\b", "_sync"),
)


def written(source: str) -> str:
    """Return the synchronous text of an asynchronous module."""
    for pattern, replacement in WORDS:
        source = re.sub(pattern, replacement, source)
    # Shorter names: lines and imports have another order.
    for command in (("check", "--select", "I,UP028", "--fix", "--unsafe-fixes"), ("format",)):
        source = subprocess.run(  # noqa: S603 - our own text
            [RUFF, *command, "--quiet", "--stdin-filename", str(PACKAGE / "_sync/module.py"), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return source


def modules() -> dict[str, str]:
    """Return the text of each module to be written, by its name."""
    sources = sorted((PACKAGE / "_async").glob("*.py"))
    return {path.name: written(path.read_text()) for path in sources if path.name not in BY_HAND}


def main() -> int:
    """Write the modules."""
    for name, text in modules().items():
        (PACKAGE / "_sync" / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
