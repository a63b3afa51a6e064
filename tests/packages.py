"""The platform's top-level packages, as git has them; tests keep no lists of their own."""

import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# Packages that are no part of the platform.
OTHERS: Final = frozenset({"benchmarks", "tests"})


def files() -> list[str]:
    """Return the paths of all files that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return [path for path in listed if path and (ROOT / path).exists()]


FILES: Final = files()
PACKAGES: Final = sorted(
    path.removesuffix("/__init__.py")
    for path in FILES
    if path.count("/") == 1 and path.endswith("/__init__.py") and path.split("/")[0] not in OTHERS
)


def sources(*, without: frozenset[str] = frozenset()) -> list[Path]:
    """Return the platform's Python files, without those of some packages."""
    chosen = tuple(f"{package}/" for package in PACKAGES if package not in without)
    return [ROOT / path for path in FILES if path.startswith(chosen) and path.endswith(".py")]
