"""Labels of members: free text of the organization, limited in number and length."""

from collections.abc import Iterator, Sequence
from typing import Final

from common.names import RULE, is_one_line

MAX_LABELS: Final = 50
MAX_LABEL_CHARS: Final = 100


def faults(labels: Sequence[str]) -> Iterator[str]:
    """Return a sentence for each error in a member's labels."""
    if len(labels) > MAX_LABELS:
        yield f"At most {MAX_LABELS} labels."
    if any(not 0 < len(label.strip()) <= MAX_LABEL_CHARS for label in labels):
        yield f"A label has 1 to {MAX_LABEL_CHARS} characters."
    if not all(is_one_line(label) for label in labels):
        yield RULE
