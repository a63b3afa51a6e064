"""``manage.py writedocs``: write the documents that are generated from the code."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.urls import get_resolver

from common.commands import CommandResult, OpsCommand
from operations import documents


class Command(OpsCommand):
    """Write the pages of the reference and docs/openapi.yaml."""

    help = (
        "Write the reference in docs/ (settings, errors, commands, openapi.yaml …) from the code."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add --to."""
        parser.add_argument("--to", default=str(settings.BASE_DIR / "docs"), help="Folder.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Write the files."""
        # Loads every view, and with it every error class.
        _ = get_resolver().url_patterns
        folder = Path(options["to"])
        for name, text in documents.pages().items():
            (folder / name).write_text(text, encoding="utf-8")
        call_command("spectacular", validate=True, fail_on_warn=True, file=folder / "openapi.yaml")
        written = [*documents.pages(), "openapi.yaml"]
        return CommandResult({"folder": str(folder), "written": written}, "")
