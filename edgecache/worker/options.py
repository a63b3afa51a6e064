"""The command line of a worker: parsed once, refused with a sentence that names the option."""

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from edgecache.protocol.names import LABEL

PORT: Final = 9100
MIB: Final = 1 << 20
MIN_CAPACITY: Final = MIB
SIZE: Final = re.compile(
    r"([0-9]{1,12}(?:\.[0-9]{1,3})?) *([kmgtp]?)(i?)b?", re.ASCII | re.IGNORECASE
)
SECRET: Final = re.compile(r"[A-Za-z0-9_-]{16,128}", re.ASCII)
OTHERS_MAY: Final = 0o007
SHORTEST_TIMEOUT_S: Final = 0.5
LOG_FORMATS: Final = ("console", "json")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")

DESCRIPTION: Final = """\
Store and serve objects for Zonal's edge cache.

A worker keeps immutable files named by their SHA-256, and serves them to clients that show a
ticket of the brain. Register the node first: the answer holds its id and, once, its secret.
"""
EPILOG: Final = """\
example:
  python -m edgecache.worker --brain https://brain.example.com:8083 \\
      --node-id 0198c0de-0000-7000-8000-000000000001 --secret-file /etc/zonal/node.secret \\
      --dir /var/lib/zonal-worker --capacity 10GiB --region eu-central \\
      --listen 0.0.0.0:9100 --endpoint https://cache1.example.com:9100 \\
      --tls-cert cert.pem --tls-key key.pem

SIGTERM or Ctrl-C drains: the worker tells the brain, finishes the requests under
way and ends. A second
Ctrl-C ends it at once. GET /healthz shows its state, GET /metrics (loopback, or with the node's
credential) counts what it did.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a worker. Sizes in bytes, times in seconds."""

    brain: str
    node_id: UUID
    secret: str = field(repr=False)
    folder: Path
    capacity_bytes: int
    region: str
    host: str
    port: int
    endpoint: str | None
    tls_cert: Path | None
    tls_key: Path | None
    brain_ca: Path | None
    max_connections: int
    client_timeout_s: float
    scrub_per_hour: int
    scrub_rate_bytes: int
    drain_s: float
    linger_s: float
    log_format: str
    log_level: str


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line; print errors and exit with 2 if there are any."""
    command_line = parser()
    given, unknown = command_line.parse_known_args(arguments)
    if unknown:
        # A value may be a secret.
        names = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        command_line.error(f"unknown arguments: {' '.join(names) or 'words without an option'}")
    if (given.tls_cert is None) != (given.tls_key is None):
        command_line.error("--tls-cert and --tls-key go together")
    # Checked here because argparse would show the value, and not check one of the environment.
    if given.log_format not in LOG_FORMATS:
        formats = ", ".join(LOG_FORMATS)
        command_line.error(f"--log-format (ZLOG_FORMAT) must be one of {formats}")
    if given.log_level not in LOG_LEVELS:
        command_line.error(f"--log-level (ZLOG_LEVEL) must be one of {', '.join(LOG_LEVELS)}")
    host, port = given.listen
    return Options(
        brain=given.brain,
        node_id=given.node_id,
        secret=given.secret_file,
        folder=given.dir,
        capacity_bytes=given.capacity,
        region=given.region,
        host=host,
        port=port,
        endpoint=given.endpoint,
        tls_cert=given.tls_cert,
        tls_key=given.tls_key,
        brain_ca=given.brain_ca,
        max_connections=given.max_connections,
        client_timeout_s=given.client_timeout,
        scrub_per_hour=given.scrub_per_hour,
        scrub_rate_bytes=given.scrub_rate,
        drain_s=given.drain,
        linger_s=given.linger,
        log_format=given.log_format,
        log_level=given.log_level.upper(),
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the worker's command line."""
    made = argparse.ArgumentParser(
        prog="python -m edgecache.worker",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_required(made)
    _add_network(made.add_argument_group("network"))
    _add_limits(made.add_argument_group("limits and care of the store"))
    logs = made.add_argument_group("logs (standard error)")
    logs.add_argument(
        "--log-format",
        metavar=f"{{{','.join(LOG_FORMATS)}}}",
        default=os.environ.get("ZLOG_FORMAT", "console"),
        help="lines for people or for machines (default: ZLOG_FORMAT, else console)",
    )
    logs.add_argument(
        "--log-level",
        metavar=f"{{{','.join(LOG_LEVELS)}}}",
        type=str.lower,
        default=os.environ.get("ZLOG_LEVEL", "info"),
        help="default: ZLOG_LEVEL, else info",
    )
    return made


def _add_required(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("required")
    add = group.add_argument
    add(
        "--brain", required=True, type=url, metavar="URL", help="the brain's worker API (port 8083)"
    )
    add("--node-id", required=True, type=_uuid, metavar="UUID", help="this node's id")
    add(
        "--secret-file",
        required=True,
        type=_secret,
        metavar="FILE",
        help="holds the node's secret; readable by its owner alone",
    )
    add("--dir", required=True, type=Path, metavar="DIR", help="the store; made if it is not there")
    add(
        "--capacity",
        required=True,
        type=_capacity,
        metavar="SIZE",
        help="the most that objects may take on the disk, as 10GiB or 500GB",
    )
    add("--region", required=True, type=_region, help="the node's region, as eu-central")


def _add_network(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add(
        "--listen",
        type=_listen,
        default=("127.0.0.1", PORT),
        metavar="HOST:PORT",
        help=f"address to serve on (default: 127.0.0.1:{PORT})",
    )
    add(
        "--endpoint",
        type=url,
        metavar="URL",
        help="how clients and the brain reach this worker, when it changed since registration",
    )
    add("--tls-cert", type=_file, metavar="FILE", help="serve https with this certificate (PEM)")
    add("--tls-key", type=_file, metavar="FILE", help="its key (PEM)")
    add("--brain-ca", type=_file, metavar="FILE", help="trust the brain's certificate by this CA")
    add(
        "--max-connections",
        type=_positive,
        default=1024,
        metavar="N",
        help="a further client takes the place of an idle one, or gets a 503 (default: 1024)",
    )
    add(
        "--client-timeout",
        type=_timeout,
        default=15.0,
        metavar="SECONDS",
        help="cut clients that send nothing for this time, or take nothing for four times this "
        "time (default: 15)",
    )


def _add_limits(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add(
        "--scrub-per-hour",
        type=_count,
        default=60,
        metavar="N",
        help="hash this many files again each hour; 0: none (default: 60)",
    )
    add(
        "--scrub-rate",
        type=size,
        default=16 * MIB,
        metavar="SIZE",
        help="maximum bytes that this reads in a second (default: 16MiB)",
    )
    add(
        "--drain",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long to wait for running requests when asked to stop (default: 30)",
    )
    add(
        "--linger",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="when asked to stop, serve for this time, so that clients' tickets still work; 30 "
        "covers all (default: 0)",
    )


def size(text: str) -> int:
    """Read a size: a number with B, kB, MB, GB, TB, KiB, MiB, GiB, TiB or nothing for bytes."""
    match = SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        raise argparse.ArgumentTypeError("is not a size; write it as 10GiB or 500MB")
    power = " kmgtp".index(match[2].lower() or " ")
    found = int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    if found < 1:
        raise argparse.ArgumentTypeError("must be more than nothing")
    return found


def url(text: str) -> str:
    """Read an http or https URL of a host, without path, query or credentials."""
    try:
        parts = urlsplit(text)
        is_right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, is_right = urlsplit(""), False
    if (
        not is_right
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
    ):
        raise argparse.ArgumentTypeError("is not a URL such as https://host:8083")
    return f"{parts.scheme}://{parts.netloc}"


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError("is not a UUID") from None


def _secret(text: str) -> str:
    path = Path(text)
    try:
        secret = path.read_text(encoding="ascii").strip()
        may_others = path.stat().st_mode & OTHERS_MAY
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise argparse.ArgumentTypeError(f"the file cannot be read: {reason}") from None
    if may_others:
        raise argparse.ArgumentTypeError("others may read the file: chmod 600 it")
    if SECRET.fullmatch(secret) is None:
        raise argparse.ArgumentTypeError("the file has no node's secret")
    return secret


def _capacity(text: str) -> int:
    capacity = size(text)
    if capacity < MIN_CAPACITY:
        raise argparse.ArgumentTypeError("must be at least 1MiB")
    return capacity


def _region(text: str) -> str:
    if LABEL.fullmatch(text) is None:
        raise argparse.ArgumentTypeError("is not a region such as eu-central")
    return text


def _listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise argparse.ArgumentTypeError(f"is not HOST:PORT, as 127.0.0.1:{PORT}")
    return host, int(port)


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError("there is no file of this name")
    return path


def _positive(text: str) -> int:
    number = _count(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return number


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError("is not a whole number")
    return int(text)


def _timeout(text: str) -> float:
    seconds = _seconds(text)
    if seconds < SHORTEST_TIMEOUT_S:
        raise argparse.ArgumentTypeError(f"must be at least {SHORTEST_TIMEOUT_S} seconds")
    return seconds


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise argparse.ArgumentTypeError("is not a number of seconds from 0 to 3600")
    return seconds
