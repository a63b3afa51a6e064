"""The banner of `up`: all addresses, and a first query to paste."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from common.machine.terminal import say, say_bold

# Safe to repeat: the table stays, and another row is added.
FILL: Final = (
    "CREATE TABLE IF NOT EXISTS greetings (id int GENERATED ALWAYS AS IDENTITY, message text); "
    "INSERT INTO greetings (message) VALUES ($$hello$$)"
)
LOOK: Final = "SELECT * FROM greetings ORDER BY id"
LABEL_WIDTH: Final = 10


@dataclass(frozen=True, kw_only=True)
class CacheAddress:
    """The addresses of the edge cache and its development key, "" without one."""

    s3_url: str
    internal_port: int
    workers_port: int
    bucket: str
    key_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class PlatformAddress:
    """The address of the platform and its development token, "" without one."""

    base_url: str
    token: str
    cache: CacheAddress | None = None


def show_banner(
    address: PlatformAddress, pages: Sequence[tuple[str, str]], *, folders: Sequence[Path]
) -> None:
    """Print the addresses, the folders of the data, the token and three lines for a shell."""
    say()
    say_bold(f"Zonal is up at {address.base_url}")
    say()
    for label, path in pages:
        say(f"  {label:<{LABEL_WIDTH}} {address.base_url}{path}")
    if address.cache is not None:
        cache = address.cache
        ports = f"brain {cache.internal_port}, its workers' API {cache.workers_port}"
        say(f"  {'Objects':<{LABEL_WIDTH}} {cache.s3_url}  (S3; {ports})")
    for label, folder in zip(("Data", "Databases"), dict.fromkeys(folders), strict=False):
        say(f"  {label:<{LABEL_WIDTH}} {folder}")
    if address.token:
        say(f"  {'Token':<{LABEL_WIDTH}} {address.token}  (development only)")
        say()
        say("Paste these, as often as you like:")
        say()
        for line in curl_lines(address):
            say(f"  {line}")
    if address.cache is not None and address.cache.key_id:
        say()
        say("Objects, with curl or the AWS CLI (a development key; boto3 takes the same values):")
        say()
        for line in object_lines(address.cache):
            say(f"  {line}")
    say()
    say("This is for development: without a proxy it must not be open to the net.")
    say("Ctrl-C stops everything; the data stays.")
    say()


def curl_lines(address: PlatformAddress) -> list[str]:
    """Return three commands: fill a table, read it, show the caller."""
    return [
        _curl(address, "/v1/sql", body={"query": FILL}),
        _curl(address, "/v1/sql", body={"query": LOOK}),
        _curl(address, "/v1/whoami"),
    ]


def object_lines(cache: CacheAddress) -> list[str]:
    """Return three commands: store this project's README, read it, store it with the AWS CLI."""
    keys = {"AWS_ACCESS_KEY_ID": cache.key_id, "AWS_SECRET_ACCESS_KEY": cache.secret}
    values = [*(f"{name}={value}" for name, value in keys.items()), "AWS_DEFAULT_REGION=us-east-1"]
    target = f"s3://{cache.bucket}/README.md"
    aws = ["aws", "--endpoint-url", cache.s3_url, "s3", "cp", "README.md", target]
    curl = ["curl", "-s", "--aws-sigv4", "aws:amz:us-east-1:s3"]
    curl += ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
    curl += ["--user", f"{cache.key_id}:{cache.secret}", f"{cache.s3_url}/{cache.bucket}/README.md"]
    upload = [*curl[:2], "-T", "README.md", *curl[2:]]
    return [shlex.join(upload), shlex.join(curl), " ".join((*values, shlex.join(aws)))]


def _curl(address: PlatformAddress, path: str, *, body: dict[str, str] | None = None) -> str:
    words = ["curl", "-s", f"{address.base_url}{path}"]
    words += ["-H", f"Authorization: Bearer {address.token}"]
    if body is not None:
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return shlex.join(words)
