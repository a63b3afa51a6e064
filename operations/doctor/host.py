"""Checks of this machine and its settings."""

import shutil
from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.core import checks

from operations.doctor.findings import Finding, Level

# Free shares of the disk.
LITTLE: Final = 0.10
TOO_LITTLE: Final = 0.03
GIB: Final = 2**30


def check_disk() -> Iterator[Finding]:
    """Check the free disk space of ZDATA_DIR."""
    disk = shutil.disk_usage(settings.DATA_DIR)
    share = disk.free / disk.total
    message = f"{disk.free // GIB} GiB ({share:.0%}) are free for {settings.DATA_DIR}."
    if share > LITTLE:
        yield Finding("disk", Level.OK, message)
    else:
        level = Level.WARNING if share > TOO_LITTLE else Level.FAILED
        yield Finding("disk", level, message, "Make room, or move ZDATA_DIR to a larger disk.")


def check_settings() -> Iterator[Finding]:
    """Run Django's checks; in production also those for deployment."""
    messages = checks.run_checks(include_deployment_checks=settings.IS_PRODUCTION)
    found = [message for message in messages if not message.is_silenced()]
    for message in found:
        level = Level.FAILED if message.is_serious() else Level.WARNING
        advice = message.hint or "See docs/settings.md."
        yield Finding("settings", level, f"{message.msg} ({message.id})", advice)
    if not found:
        kind = "production" if settings.IS_PRODUCTION else "development"
        yield Finding("settings", Level.OK, f"They fit together, for {kind}.")
