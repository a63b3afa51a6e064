"""The command line of a worker: a table of options, refused with a sentence that names the option.

An option is a field of ``Options``; the parser, its help and docs/commands.md come from that.
"""

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from common.settings.env import Env, SettingError
from common.settings.table import ROW, Parse, SettingRow, load, rows
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
# Read where the option is not given.
ENVIRONMENT: Final = {"--log-format": "ZLOG_FORMAT", "--log-level": "ZLOG_LEVEL"}
# The field that each group of the help begins with.
GROUPS: Final = {
    "brain": "required",
    "listen": "network",
    "scrub_per_hour": "limits and care of the store",
    "log_format": "logs (standard error)",
}

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


def size(text: str) -> int:
    """Read a size: a number with B, kB, MB, GB, TB, KiB, MiB, GiB, TiB or nothing for bytes."""
    match = SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        raise ValueError("is not a size; write it as 10GiB or 500MB")
    power = " kmgtp".index(match[2].lower() or " ")
    found = int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    if found < 1:
        raise ValueError("must be more than nothing")
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
        raise ValueError("is not a URL such as https://host:8083")
    return f"{parts.scheme}://{parts.netloc}"


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ValueError("is not a UUID") from None


def _secret(text: str) -> str:
    path = Path(text)
    try:
        secret = path.read_text(encoding="ascii").strip()
        may_others = path.stat().st_mode & OTHERS_MAY
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ValueError(f"the file cannot be read: {reason}") from None
    if may_others:
        raise ValueError("others may read the file: chmod 600 it")
    if SECRET.fullmatch(secret) is None:
        raise ValueError("the file has no node's secret")
    return secret


def _capacity(text: str) -> int:
    capacity = size(text)
    if capacity < MIN_CAPACITY:
        raise ValueError("must be at least 1MiB")
    return capacity


def _region(text: str) -> str:
    if LABEL.fullmatch(text) is None:
        raise ValueError("is not a region such as eu-central")
    return text


def _listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"is not HOST:PORT, as 127.0.0.1:{PORT}")
    return host, int(port)


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise ValueError("there is no file of this name")
    return path


def _count(minimum: int) -> Parse:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or len(text) > 9:
            raise ValueError("is not a whole number")
        if int(text) < minimum:
            raise ValueError(f"must be at least {minimum}")
        return int(text)

    return read


def _seconds(minimum: float = 0.0) -> Parse:
    def read(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= 3600:
            raise ValueError("is not a number of seconds from 0 to 3600")
        if seconds < minimum:
            raise ValueError(f"must be at least {minimum} seconds")
        return seconds

    return read


def _log_level(text: str) -> str:
    word: str = _one_of(LOG_LEVELS)(text.lower())
    return word.upper()


def _one_of(words: tuple[str, ...]) -> Parse:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return text

    return read


def option(
    name: str, metavar: str, sentence: str, read: Parse, *, default: str | None = None
) -> Any:
    """Return the field of an option.

    default: as it would be given; "" for none: the value is None then; None: it is required.
    """

    def parse(value: Any) -> Any:
        if value is None:
            raise ValueError("must not be empty")
        return None if value == "" else value

    row = SettingRow(
        variable=name,
        sentence=sentence,
        kind=metavar,
        shown_default=default or "",
        read_text=read,
        default=read(default) if default else default,
        parse=parse,
    )
    return field(metadata={ROW: row})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of a worker. Sizes in bytes, times in seconds."""

    brain: str = option("--brain", "URL", "the brain's worker API (port 8083)", url)
    node_id: UUID = option("--node-id", "UUID", "this node's id", _uuid)
    secret: str = field(repr=False)
    secret_file: Path = option(
        "--secret-file", "FILE", "holds the node's secret; readable by its owner alone", Path
    )
    folder: Path = option("--dir", "DIR", "the store; made if it is not there", Path)
    capacity_bytes: int = option(
        "--capacity",
        "SIZE",
        "the most that objects may take on the disk, as 10GiB or 500GB",
        _capacity,
    )
    region: str = option("--region", "REGION", "the node's region, as eu-central", _region)
    listen: tuple[str, int] = option(
        "--listen", "HOST:PORT", "address to serve on", _listen, default=f"127.0.0.1:{PORT}"
    )
    endpoint: str | None = option(
        "--endpoint",
        "URL",
        "how clients and the brain reach this worker, when it changed since registration",
        url,
        default="",
    )
    tls_cert: Path | None = option(
        "--tls-cert", "FILE", "serve https with this certificate (PEM)", _file, default=""
    )
    tls_key: Path | None = option("--tls-key", "FILE", "its key (PEM)", _file, default="")
    brain_ca: Path | None = option(
        "--brain-ca", "FILE", "trust the brain's certificate by this CA", _file, default=""
    )
    max_connections: int = option(
        "--max-connections",
        "N",
        "a further client takes the place of an idle one, or gets a 503",
        _count(1),
        default="1024",
    )
    client_timeout_s: float = option(
        "--client-timeout",
        "SECONDS",
        "cut clients that send nothing for this time, or take nothing for four times this time",
        _seconds(SHORTEST_TIMEOUT_S),
        default="15",
    )
    scrub_per_hour: int = option(
        "--scrub-per-hour",
        "N",
        "hash this many files again each hour; 0: none",
        _count(0),
        default="60",
    )
    scrub_rate_bytes: int = option(
        "--scrub-rate", "SIZE", "maximum bytes that this reads in a second", size, default="16MiB"
    )
    drain_s: float = option(
        "--drain",
        "SECONDS",
        "how long to wait for running requests when asked to stop",
        _seconds(),
        default="30",
    )
    linger_s: float = option(
        "--linger",
        "SECONDS",
        "when asked to stop, serve for this time, so that clients' tickets still work; 30 covers"
        " all",
        _seconds(),
        default="0",
    )
    log_format: str = option(
        "--log-format",
        f"{{{','.join(LOG_FORMATS)}}}",
        "lines for people or for machines; ZLOG_FORMAT without it",
        _one_of(LOG_FORMATS),
        default="console",
    )
    log_level: str = option(
        "--log-level",
        f"{{{','.join(LOG_LEVELS)}}}",
        "the least severe messages that are written; ZLOG_LEVEL without it",
        _log_level,
        default="info",
    )

    @property
    def host(self) -> str:
        """The address to serve on."""
        return self.listen[0]

    @property
    def port(self) -> int:
        """The port to serve on."""
        return self.listen[1]


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line; print errors and exit with 2 if there are any."""
    command_line = parser()
    given, unknown = command_line.parse_known_args(arguments)
    if unknown:
        # A value may be a secret.
        names = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        command_line.error(f"unknown arguments: {' '.join(names) or 'words without an option'}")
    texts = {row.variable: getattr(given, name) or "" for name, row in rows(Options).items()}
    fallback = {name: os.environ.get(other, "") for name, other in ENVIRONMENT.items()}
    try:
        secret = _secret(texts["--secret-file"])
        options = load(Options, Env(texts, fallback), secret=secret)
    except ValueError as error:
        command_line.error(f"--secret-file: {error}")
    except SettingError as error:
        sentence = str(error).removeprefix("zonal: ")
        for name, variable in ENVIRONMENT.items():
            sentence = sentence.replace(name, f"{name} ({variable})")
        command_line.error(sentence)
    if (options.tls_cert is None) != (options.tls_key is None):
        command_line.error("--tls-cert and --tls-key go together")
    return options


def parser() -> argparse.ArgumentParser:
    """Return the parser of the worker's command line, which takes all values as text."""
    made = argparse.ArgumentParser(
        prog="python -m edgecache.worker",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    group = made.add_argument_group()
    for name, row in rows(Options).items():
        if name in GROUPS:
            group = made.add_argument_group(GROUPS[name])
        shown = f" (default: {row.shown_default})" if row.shown_default else ""
        group.add_argument(
            row.variable,
            dest=name,
            metavar=row.kind,
            required=row.default is None,
            help=row.sentence + shown,
        )
    return made
