"""Settings from the environment: parsed once, refused with a sentence, listed in docs/settings.md.

A value is looked for in the variable itself, then in the file that ``NAME_FILE`` names (for
secrets mounted as files), then in ``$ZDATA_DIR/runtime.env`` (written by ``up``). An empty value
counts as unset.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from platform_site.embedded.production import TRUE, is_production
from platform_site.embedded.runtime_env import load_runtime_env

__all__ = ["Env", "Setting", "SettingError", "data_dir", "from_process", "is_production"]

FALSE: Final = frozenset({"0", "false", "no", "off"})


class SettingError(SystemExit):
    """A setting with a value that cannot be used: ends the process with the sentence, no trace."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(f"zonal: {name} {sentence}")


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of docs/settings.md."""

    name: str
    kind: str
    default: str
    help: str
    secret: bool


@dataclass
class Env:
    """A reader of settings that remembers what it was asked for."""

    variables: Mapping[str, str]
    fallback: Mapping[str, str] = field(default_factory=dict)
    declared: dict[str, Setting] = field(default_factory=dict)

    def text(self, name: str, default: str = "", *, help_text: str, shown: str = "") -> str:
        """Give a string; ``shown`` replaces the default in the documentation."""
        self._declare(name, "text", shown or default or "none", help_text)
        return self.raw(name) or default

    def secret(
        self, name: str, *, help_text: str, min_chars: int = 32, aliases: tuple[str, ...] = ()
    ) -> str:
        """Give a secret of at least ``min_chars`` characters, or '' when unset."""
        value = ""
        for spelling in (name, *aliases):
            self._declare(spelling, "secret", "none", help_text, secret=True)
            value = value or self.raw(spelling)
        if value and len(value) < min_chars:
            raise SettingError(name, f"must have at least {min_chars} characters.")
        return value

    def integer(
        self, name: str, default: int, *, help_text: str, minimum: int = 0, maximum: int = 2**31
    ) -> int:
        """Give an integer within bounds."""
        self._declare(name, "integer", str(default), help_text)
        raw = self.raw(name)
        if not raw:
            return default
        if not re.fullmatch(r"-?[0-9]{1,18}", raw):
            raise SettingError(name, f"must be a whole number, not {raw!r}.")
        if not minimum <= int(raw) <= maximum:
            raise SettingError(name, f"must be from {minimum} to {maximum}, not {raw}.")
        return int(raw)

    def flag(self, name: str, *, default: bool, help_text: str) -> bool:
        """Give a boolean, written as true/false, 1/0, yes/no or on/off."""
        self._declare(name, "boolean", str(default).lower(), help_text)
        raw = self.raw(name).lower()
        if raw and raw not in TRUE | FALSE:
            raise SettingError(name, f"must be true or false, not {raw!r}.")
        return raw in TRUE if raw else default

    def choice(self, name: str, default: str, options: tuple[str, ...], *, help_text: str) -> str:
        """Give one of a few words."""
        self._declare(name, " or ".join(options), default, help_text)
        value = self.raw(name) or default
        if value not in options:
            raise SettingError(name, f"must be one of {', '.join(options)}, not {value!r}.")
        return value

    def words(self, name: str, default: tuple[str, ...] = (), *, help_text: str) -> tuple[str, ...]:
        """Give a comma-separated list."""
        self._declare(name, "list", ", ".join(default) or "none", help_text)
        raw = self.raw(name)
        return tuple(word.strip() for word in raw.split(",") if word.strip()) if raw else default

    def secrets(self, name: str, *, help_text: str, min_chars: int = 32) -> tuple[str, ...]:
        """Give a comma-separated list of secrets, the current one first."""
        self._declare(name, "secrets", "none", help_text, secret=True)
        values = tuple(word.strip() for word in self.raw(name).split(",") if word.strip())
        if any(len(value) < min_chars for value in values):
            raise SettingError(name, f"must have at least {min_chars} characters in each secret.")
        return values

    def url(self, name: str, default: str = "", *, help_text: str, schemes: tuple[str, ...]) -> str:
        """Give a URL of one of the schemes; its value may hold a password, so it is never shown."""
        self._declare(name, "URL", default or "none", help_text, secret=True)
        value = self.raw(name) or default
        if value and urlsplit(value).scheme not in schemes:
            raise SettingError(name, f"must be a URL starting with {' or '.join(schemes)}://.")
        return value

    def _declare(
        self, name: str, kind: str, default: str, help_text: str, *, secret: bool = False
    ) -> None:
        self.declared[name] = Setting(name, kind, default, help_text, secret)

    def raw(self, name: str) -> str:
        """Return a variable's text, '' when it is unset.

        Raises SettingError for a file that cannot be read.
        """
        value = self.variables.get(name, "").strip()
        path = self.variables.get(f"{name}_FILE", "").strip()
        if value or not path:
            return value or self.fallback.get(name, "")
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            reason = getattr(exc, "strerror", None) or "it is not UTF-8"
            raise SettingError(f"{name}_FILE", f"cannot be read: {reason}.") from exc


def data_dir(variables: Mapping[str, str]) -> Path:
    """Give ``ZDATA_DIR``: where ``up`` keeps what an installation must not lose."""
    return Path(variables.get("ZDATA_DIR", "").strip() or "var").absolute()


def from_process() -> Env:
    """Give the reader over this process's environment."""
    return Env(os.environ, load_runtime_env(data_dir(os.environ)))
