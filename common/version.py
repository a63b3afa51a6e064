"""The release of this code."""

from typing import Final

# Also in pyproject.toml and deploy/Dockerfile, which cannot read it; a test compares them.
VERSION: Final = "0.1.0"
