"""``python -m edgecache.worker``."""

import logging
import os

from common.version import VERSION
from edgecache.worker import logs, options
from edgecache.worker.process import run


def main() -> int:
    """Read the command line and run; return the exit code."""
    given = options.parse()
    logs.configure(given.log_format, given.log_level)
    logging.getLogger(__name__).info("starting", extra={"version": VERSION})
    return run(given)


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    # A thread may wait for a brain that does not answer; all that has to be written is written.
    os._exit(code)
