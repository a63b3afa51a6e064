"""The release of this code, and of the oldest database that it upgrades.

Every process imports this first, so that an older Python is refused in a sentence.
"""

import sys
from typing import Final

if sys.version_info < (3, 11):  # noqa: UP036 - nothing else of this project can be imported then
    sys.exit("Zonal needs Python 3.11 or later; this is %d.%d." % sys.version_info[:2])  # noqa: UP031 - as above

# Also in pyproject.toml and deploy/Dockerfile, which cannot read it; a test compares them.
VERSION: Final = "0.1.0"
# The first release that has the present migrations: what an upgrade can begin with.
OLDEST: Final = "0.1.0"
TOO_OLD: Final = (
    f"The database is of a time before release {OLDEST}, which Zonal {VERSION} cannot upgrade. "
    "Give it an empty one: docs/upgrade.md."
)
