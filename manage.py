#!/usr/bin/env python
"""Zonal's commands: ``manage.py help`` lists them, ``manage.py up`` runs the platform."""

import os
import sys

import django
from django.core.management import execute_from_command_line

from common import version  # noqa: F401 - refuses an older Python
from common.settings.env import is_production


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    if is_production(os.environ):
        django.setup()
        from platform_site import startup  # noqa: PLC0415 - needs Django

        startup.refuse_command(sys.argv[1:])
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
