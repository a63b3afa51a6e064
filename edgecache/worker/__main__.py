"""``python -m edgecache.worker``."""

import logging
import os
from typing import Final

from common.version import VERSION
from edgecache.worker import logs, options
from edgecache.worker.process import run

SETTINGS: Final = ("ZLOG_FORMAT", "ZLOG_LEVEL", "ZTRACES_URL")
# `make run` gives all of the platform's to each process, and names what is none once.
SUPERVISED: Final = "ZONAL_SUPERVISED"

log = logging.getLogger(__name__)


def main() -> int:
    """Read the command line and run; return the exit code."""
    # Only now: an older Python cannot import it.
    from common.settings.unknown_names import unknown_names  # noqa: PLC0415 - see above

    given = options.parse()
    logs.configure(given.log_format, given.log_level)
    log.info("starting", extra={"version": VERSION})
    for unknown in () if SUPERVISED in os.environ else unknown_names(os.environ, SETTINGS):
        log.warning("setting_unknown", extra={"reason": unknown.sentence()})
    return run(given)


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    # A thread may wait for a brain that does not answer; all that has to be written is written.
    os._exit(code)
