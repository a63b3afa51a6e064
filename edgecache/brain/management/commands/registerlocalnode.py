"""``manage.py registerlocalnode``: a worker of this machine, as the platform's own."""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from common.commands import CommandRefused, CommandResult, OpsCommand
from common.settings.env import Env
from edgecache import local_nodes
from edgecache.brain import local_setup
from edgecache.brain.core.errors import Invalid
from edgecache.brain.nodes.endpoints import normalize
from edgecache.protocol.names import LABEL

UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class Command(OpsCommand):
    """Make a node's identity in a folder, once, and register it; again, it changes where it is."""

    help = (
        "Register a worker of this machine as the platform's own, and print the command that "
        "starts it. Safe to repeat."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the folder and the node's properties."""
        parser.add_argument(
            "folder", type=Path, metavar="FOLDER", help="Where its id and secret are kept (0600)."
        )
        parser.add_argument("--region", required=True, type=_region, help="As eu-central.")
        parser.add_argument(
            "--port", type=int, default=local_nodes.FIRST_PORT, help="Its port on 127.0.0.1."
        )
        parser.add_argument("--endpoint", help="How it is reached, when not at 127.0.0.1.")
        parser.add_argument(
            "--brain", metavar="URL", help="The brain's workers' API; default: ZBRAIN_WORKER_URL."
        )
        parser.add_argument("--capacity", type=_size, default="10GiB", help="As 10GiB.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Write the folder and the row."""
        brain_url = options["brain"] or _brain_url()
        folder: Path = options["folder"].absolute()
        known = local_nodes.load(folder)
        try:
            endpoint = normalize(
                options["endpoint"] or f"http://127.0.0.1:{options['port']}",
                is_trusted=True,
                is_production=settings.IS_PRODUCTION,
            )
        except Invalid as exc:
            message = f"The endpoint {exc.errors[0].message}."
            raise CommandRefused("endpoint_invalid", message) from None
        node = local_nodes.save(
            folder,
            region=options["region"],
            port=options["port"],
            node_id=known.node_id if known else local_nodes.new_node_id(),
            capacity_bytes=options["capacity"],
        )
        local_setup.register(node, endpoint=endpoint)
        command = (
            f"python -m edgecache.worker --brain {brain_url} "
            f"--node-id {node.node_id} --secret-file {node.secret_file} "
            f"--dir {node.folder / 'store'} --capacity {node.capacity_bytes} "
            f"--region {node.region} --listen 127.0.0.1:{node.port}"
        )
        facts = {"node_id": str(node.node_id), "endpoint": endpoint, "command": command}
        return CommandResult(facts, command)


def _brain_url() -> str:
    """Return where workers reach the brain, whose settings this process may not have.

    Raises CommandRefused in production, where a guess would name http for a brain with TLS.
    """
    is_known = settings.BRAIN.tls_cert or Env(os.environ).raw("ZBRAIN_WORKER_URL")
    if settings.IS_PRODUCTION and not is_known:
        message = "ZBRAIN_WORKER_URL is missing: set it as the brain has it, or give --brain URL."
        raise CommandRefused("brain_url_missing", message)
    return settings.BRAIN.workers_url


def _region(text: str) -> str:
    if not LABEL.fullmatch(text):
        raise ArgumentTypeError("a region is like eu-central: a-z, 0-9, hyphens")
    return text


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d{1,12})(|KiB|MiB|GiB|TiB)", text)
    if match is None or not int(match[1]):
        raise ArgumentTypeError("a size is like 10GiB")
    return int(match[1]) * UNITS[match[2]]
