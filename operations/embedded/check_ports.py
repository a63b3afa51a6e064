"""`python -m operations.embedded.check_ports`: is every port of `up` free?

`make run` calls this before it installs anything, so it only needs the standard library.
"""

import os
import sys
from collections.abc import Mapping

from common import version  # noqa: F401 - refuses an older Python
from common.machine.errors import StartError
from common.machine.ports import check_port
from operations.embedded.platform_processes import platform_recipe


def check(environ: Mapping[str, str]) -> None:
    """Raise StartError, with the setting to change, for a port that `up` cannot have."""
    for port, setting in platform_recipe(environ).ports():
        check_port(port, setting)


if __name__ == "__main__":
    try:
        check(os.environ)
    except StartError as error:
        sys.exit(str(error))
