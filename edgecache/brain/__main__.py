"""``python -m edgecache.brain``: a brain, without the rest of the platform in memory."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from common import version  # noqa: F401 - refuses an older Python

DESCRIPTION: Final = """\
Run a coordination node of the edge cache until SIGTERM: its internal API (ZBRAIN_PORT, 8081),
its object API (ZBRAIN_S3_PORT, 9000) and its workers' API (ZBRAIN_WORKER_PORT, 8083).

It needs ZCACHE_BRAIN_SECRET (32 characters or more) and a migrated database. Several brains may
run over one database. Every setting is in docs/settings.md.
"""


def main(argv: Sequence[str]) -> int:
    """Run until a signal; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="runbrain",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args(argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    from edgecache.brain.command import run  # noqa: PLC0415 - reads the settings

    return run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
