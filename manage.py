#!/usr/bin/env python
"""Zonal's commands: ``manage.py help`` lists them, ``manage.py up`` runs the platform."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
