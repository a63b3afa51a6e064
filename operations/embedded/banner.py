"""The banner of `up`: all addresses, and a first query to paste."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from common.machine.terminal import say, say_bold
from operations.embedded.platform_processes import Recipe

# Safe to repeat: the table stays, and another row is added.
FILL: Final = (
    "CREATE TABLE IF NOT EXISTS greetings (id int GENERATED ALWAYS AS IDENTITY, message text); "
    "INSERT INTO greetings (message) VALUES ($$hello$$)"
)
LOOK: Final = "SELECT * FROM greetings ORDER BY id"
LABEL_WIDTH: Final = 10


def show_banner(recipe: Recipe, made: Mapping[str, Any], *, folders: Sequence[Path]) -> None:
    """Print the addresses, the folders of the data, the token and lines for a shell.

    made: what setup printed; without a token or a key there are no lines that need it.
    """
    base_url, cache = f"http://127.0.0.1:{recipe.web.port}", recipe.cache
    token, access = made.get("dev_token"), made.get("cache")
    say()
    say_bold(f"Zonal is up at {base_url}")
    say()
    for label, path in recipe.pages:
        say(f"  {label:<{LABEL_WIDTH}} {base_url}{path}")
    if cache is not None:
        ports = f"brains {cache.internal_port}, their workers' API {cache.workers_port}"
        say(f"  {'Objects':<{LABEL_WIDTH}} {cache.s3_url}  (S3; {ports})")
    for label, folder in zip(("Data", "Databases"), dict.fromkeys(folders), strict=False):
        say(f"  {label:<{LABEL_WIDTH}} {folder}")
    if token:
        say(f"  {'Token':<{LABEL_WIDTH}} {token}  (development only)")
        _say_lines("Paste these, as often as you like:", curl_lines(base_url, str(token)))
    if cache is not None and access:
        _say_lines(
            "Objects, with curl or the AWS CLI (a development key; boto3 takes the same values):",
            object_lines(cache.s3_url, access),
        )
    say()
    say("This is for development: without a proxy it must not be open to the net.")
    say("Ctrl-C stops everything; the data stays.")
    say()


def curl_lines(base_url: str, token: str) -> list[str]:
    """Return three commands: fill a table, read it, show the caller."""

    def curl(path: str, body: dict[str, str] | None = None) -> str:
        words = ["curl", "-s", f"{base_url}{path}", "-H", f"Authorization: Bearer {token}"]
        if body is not None:
            words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        return shlex.join(words)

    return [curl("/v1/sql", {"query": FILL}), curl("/v1/sql", {"query": LOOK}), curl("/v1/whoami")]


def object_lines(s3_url: str, access: Mapping[str, str]) -> list[str]:
    """Return three commands: store this project's README, read it, store it with the AWS CLI."""
    key_id, secret, bucket = (
        access[name] for name in ("access_key_id", "secret_access_key", "bucket")
    )
    values = [f"AWS_ACCESS_KEY_ID={key_id}", f"AWS_SECRET_ACCESS_KEY={secret}"]
    values.append("AWS_DEFAULT_REGION=us-east-1")
    aws = ["aws", "--endpoint-url", s3_url, "s3", "cp", "README.md", f"s3://{bucket}/README.md"]
    curl = ["curl", "-s", "--aws-sigv4", "aws:amz:us-east-1:s3"]
    curl += ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
    curl += ["--user", f"{key_id}:{secret}", f"{s3_url}/{bucket}/README.md"]
    upload = [*curl[:2], "-T", "README.md", *curl[2:]]
    return [shlex.join(upload), shlex.join(curl), " ".join((*values, shlex.join(aws)))]


def _say_lines(head: str, lines: Sequence[str]) -> None:
    for text in ("", head, "", *(f"  {line}" for line in lines)):
        say(text)
