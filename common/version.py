"""The release of this code, and of the oldest database that it upgrades."""

from typing import Final

# Also in pyproject.toml and deploy/Dockerfile, which cannot read it; a test compares them.
VERSION: Final = "0.1.0"
# The first release that has the present migrations: what an upgrade can begin with.
OLDEST: Final = "0.1.0"
TOO_OLD: Final = (
    f"The database is of a time before release {OLDEST}, which Zonal {VERSION} cannot upgrade. "
    "Give it an empty one: docs/upgrade.md."
)
