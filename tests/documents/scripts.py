"""The commands of a page as one script, as a reader would paste them."""

from typing import Final

from tests.documents.blocks import shell_blocks
from tests.documents.not_run import reason

# These pages print a gap in the place of the reader's token.
GAPS: Final = ("Bearer …", "Bearer zonal_dev_…")


def script_of(page: str, *, only: str = "", but: str = "") -> str:
    """Return the page's commands in their order, without those that are not run.

    only, but: what the blocks hold that are wanted, or are not.
    """
    chosen = [each.text for each in shell_blocks(page) if not reason(page, each.text)]
    chosen = [text for text in chosen if only in text and not (but and but in text)]
    script = "\n".join(chosen)
    for gap in GAPS:
        script = script.replace(f"'Authorization: {gap}'", '"Authorization: Bearer $ZONAL_TOKEN"')
    return script
