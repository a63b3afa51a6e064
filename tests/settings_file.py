"""The settings file, read again in this process."""

import os
import runpy
from pathlib import Path
from typing import Any, Final

import structlog

FILE: Final = Path(__file__).parent.parent / "platform_site/settings.py"


def read_settings() -> dict[str, Any]:
    """Read the settings file with the present environment; return its names.

    It also configures the logs. That is undone, because loggers in use keep their configuration,
    and ``structlog.testing.capture_logs`` finds only those that share the present one.
    """
    configured = structlog.get_config()
    try:
        return runpy.run_path(os.fspath(FILE))
    finally:
        structlog.configure(**configured)
