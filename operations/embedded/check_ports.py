"""`python -m operations.embedded.check_ports`: is every port of `up` free?

`make run` calls this before it installs anything, so it only needs the standard library.
"""

import os
import sys
from collections.abc import Mapping

from common import version  # noqa: F401 - refuses an older Python
from common.machine.errors import StartError
from common.machine.ports import check_port, port_from
from operations.embedded.platform_processes import cache_recipe


def check(environ: Mapping[str, str]) -> None:
    """Raise StartError, with the setting to change, for a port that `up` cannot have."""
    check_port(port_from(environ, "PORT", default=8000), "PORT")
    cache = cache_recipe(environ)
    for port, setting in cache.ports() if cache else ():
        check_port(port, setting)


def main() -> int:
    """Check the ports of this process's environment; the exit status."""
    try:
        check(os.environ)
    except StartError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
