"""The blocks of code on the documentation's pages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BLOCK: Final = re.compile(
    r"^```(?P<language>\w*)\n(?P<fenced>(?:.*\n)*?)^```$"
    r"|(?:^\n|\A)(?P<indented>(?:^    .*\n|^\n(?=    ))+)",
    re.MULTILINE,
)
# What a line of a shell begins with on these pages: a program, or a variable or function to set.
PROGRAM: Final = re.compile(
    r"(?:[A-Z_]+=|\w+\(\) \{|(?:api|aws|cat|cp|curl|docker|echo|export|make|manage\.py|npm|pip"
    r"|python3?|sh|sudo|systemctl|apt-get|useradd|zonal(?:-manage)?|age-keygen|gunicorn|pgbackrest|psql"
    r"|install|mkdir|pg_createcluster)\s"
    r"|\.venv/bin/|deploy/[\w./-]+|clients/[\w./-]+)"
)


@dataclass(frozen=True)
class Block:
    """A block of code. page: its path from the top of the repository."""

    page: str
    language: str
    text: str

    @property
    def is_shell(self) -> bool:
        """True if a reader would paste it into a terminal."""
        if self.language:
            return self.language in {"sh", "shell", "bash", "console"}
        return PROGRAM.match(self.text) is not None


def pages() -> list[str]:
    """Return the pages that people read, by their paths."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page."""
    for found in BLOCK.finditer((ROOT / page).read_text()):
        text = found["fenced"] if found["fenced"] is not None else dedent(found["indented"])
        yield Block(page, found["language"] or "", text.strip("\n") + "\n")


def shell_blocks(page: str) -> list[Block]:
    """Return the blocks of a page that are for a terminal."""
    return [block for block in blocks(page) if block.is_shell]
