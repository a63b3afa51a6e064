"""``manage.py gatewayconfig``: the configuration of nginx in front of the object API."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from common.commands import CommandRefused, CommandResult, OpsCommand
from common.machine.files import write_private
from edgecache.brain.conf.brain import BrainSettings
from edgecache.brain.delivery import nginx_offload
from edgecache.brain.delivery.nginx_config import Site, configuration


class Command(OpsCommand):
    """Print the configuration, or write it to a file that only its owner may read."""

    help = (
        "Write the configuration of an nginx in front of the object API: it ends TLS, and sends "
        "the files of workers on its own machine by itself (--store)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--listen",
            action="append",
            metavar="ADDRESS",
            help="As nginx takes it, once or more: 80, 127.0.0.1:8090, '443 ssl'. Default: 80.",
        )
        parser.add_argument("--server-name", default="_", help="Host names; default: any.")
        parser.add_argument(
            "--brain",
            metavar="HOST:PORT",
            help="Default: this brain's object API; unix:FILE is its ZBRAIN_S3_SOCKET.",
        )
        parser.add_argument(
            "--tls-cert", type=Path, metavar="FILE", help="Certificate; nginx reads the file."
        )
        parser.add_argument("--tls-key", type=Path, metavar="FILE", help="Its private key.")
        parser.add_argument(
            "--store",
            action="append",
            default=[],
            metavar="NODE_ID=FOLDER",
            help=(
                "The folder of a worker on nginx's own machine, once or more: nginx then sends its "
                "files by itself. nginx must be allowed to read them."
            ),
        )
        parser.add_argument("--output", type=Path, metavar="FILE", help="Default: standard output.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Return or write the text."""
        if not settings.BRAIN.secret:
            message = "ZCACHE_BRAIN_SECRET is missing: nginx's token is derived from it."
            raise CommandRefused("secret_missing", message)
        if (options["tls_cert"] is None) != (options["tls_key"] is None):
            raise CommandRefused("tls_incomplete", "--tls-cert and --tls-key go together.")
        text = configuration(
            Site(
                token=nginx_offload.token_of(settings.BRAIN.secret),
                brain=options["brain"] or _own_brain(settings.BRAIN),
                listen=options["listen"] or ["80"],
                server_name=options["server_name"],
                stores=dict(map(_store, options["store"])),
                tls=(options["tls_cert"], options["tls_key"]) if options["tls_cert"] else None,
            )
        )
        if options["output"] is None:
            return CommandResult({"configuration": text}, text)
        _write(options["output"], text)
        said = f"{options['output']} written; now: nginx -t && nginx -s reload"
        return CommandResult({"written": str(options["output"])}, said)


def _own_brain(brain: BrainSettings) -> str:
    if brain.s3_socket is not None:
        return f"unix:{brain.s3_socket}"
    address, port = brain.s3.address, brain.s3.port
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _store(text: str) -> tuple[UUID, Path]:
    """Parse ``NODE_ID=FOLDER``. The id is not checked: the brain never names a removed node."""
    node_id, _, folder = text.partition("=")
    try:
        node = UUID(node_id)
    except ValueError:
        raise CommandRefused(
            "store_invalid", f"--store {text}: it is not NODE_ID=FOLDER."
        ) from None
    # These characters have a meaning in nginx's configuration.
    if not folder.startswith("/") or any(
        char in '"$\\' or not char.isprintable() for char in folder
    ):
        message = f"--store {text}: the folder is not an absolute path that nginx can read."
        raise CommandRefused("store_invalid", message)
    return node, Path(folder)


def _write(path: Path, text: str) -> None:
    """Replace the file; it contains a secret."""
    try:
        write_private(path, text)
    except OSError as exc:
        message = f"{path} cannot be written: {exc.strerror}."
        raise CommandRefused("file_unwritable", message) from None
