"""For tests: write text messages as JSON lines into a folder."""

import json
import os
from pathlib import Path
from typing import Final

NAME: Final = "messages.jsonl"


def send(to: str, text: str, *, folder: Path) -> None:
    """Append ``{"to", "text"}`` to ``messages.jsonl``, readable by its owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    line = json.dumps({"to": to, "text": text}) + "\n"
    # A single write of a short line in append mode: two workers never mix their lines.
    descriptor = os.open(folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
