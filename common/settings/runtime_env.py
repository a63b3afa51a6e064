"""`$ZDATA_DIR/runtime.env`: the settings that `up` chose, for other commands of the instance.

A list of KEY=VALUE lines, 0600. A setting in the environment (or its NAME_FILE form) takes
precedence and is never written here; a secret of an earlier start, which it hides, stays.
"""

import base64
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from common.machine.files import read_text, write_private

FILE_NAME: Final = "runtime.env"
RANDOM_SECRETS: Final = (
    "SECRET_KEY",
    "ZJWT_SECRET",
    "ZJWT_REFRESH_SECRET",
    "ZMFA_SECRET",
    "ZAUTH_DEV_SECRET",
    "ZCACHE_BRAIN_SECRET",
)
# Other names of the same setting in the environment.
ALIASES: Final = {"ZCACHE_BRAIN_SECRET": ("BRAIN_SECRET",)}
SECRET_BYTES: Final = 48
HEADER: Final = (
    "# Written by `manage.py up`. A setting in the environment wins over its line here.\n"
)


def load_runtime_env(data_dir: Path) -> dict[str, str]:
    """Read the file of a data folder; {} if it does not exist or is not readable."""
    try:
        text = read_text(data_dir / FILE_NAME)
    except (PermissionError, NotADirectoryError):
        return {}
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    pairs = (line.partition("=") for line in lines)
    return {name: value for name, separator, value in pairs if separator}


def save_runtime_env(data_dir: Path, values: Mapping[str, str]) -> None:
    """Replace the file atomically. Raises ValueError for a value of more than one line."""
    for name, value in values.items():
        if "\n" in value or "\r" in value:
            sentence = f"{name} does not fit in one line"
            raise ValueError(sentence)
    lines = "".join(f"{name}={value}\n" for name, value in sorted(values.items()))
    write_private(data_dir / FILE_NAME, HEADER + lines)


def first_secrets() -> dict[str, str]:
    """Return a new random value for every secret of the platform."""
    made = {name: secrets.token_urlsafe(SECRET_BYTES) for name in RANDOM_SECRETS}
    return {**made, "ZSECRET_KEYS": _fernet_key()}


def complete_secrets(known: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the file's values with every missing secret, without those set in the environment."""
    made = {**first_secrets(), **known}
    return {name: value for name, value in made.items() if not is_given(name, environ)}


def hidden_secrets(known: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the file's secrets that the environment hides; rows may be encrypted with them."""
    names = {*first_secrets()} - {*ALIASES}
    return {
        name: value for name, value in known.items() if name in names and is_given(name, environ)
    }


def is_given(name: str, environ: Mapping[str, str]) -> bool:
    """True if the environment sets a setting, by value or by file."""
    names = (name, *ALIASES.get(name, ()))
    return any(environ.get(f"{each}{end}", "").strip() for each in names for end in ("", "_FILE"))


def _fernet_key() -> str:
    """Return 32 random bytes in URL-safe base64. Source: Fernet specification, "Key Format"."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode()
