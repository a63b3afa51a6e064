"""Which platform the command talks to, and with what it signs in.

A session is kept in ``credentials.json`` under $XDG_CONFIG_HOME/zonal, readable by its owner alone.
``ZONAL_URL`` and ``ZONAL_TOKEN`` outrank it. A kept session is used for the URL that it belongs to
only, so that a mistyped URL never gets its tokens.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import zonal
from zonal.addresses import checked


class UsageError(Exception):
    """The command was called wrongly; the text says what to do."""


class NotSignedInError(UsageError):
    """There is neither a session nor a token for the platform."""


@dataclass(frozen=True)
class Place:
    """A platform, and the token for it if the environment has one."""

    url: str
    token: str | None = None


class Credentials:
    """The file of sessions and tokens, by the URL of their platform."""

    def __init__(self, path: Path) -> None:
        """Use a file, which need not exist."""
        self._path = path

    @property
    def current(self) -> str | None:
        """The platform signed in to last."""
        url = self._read().get("current")
        return url if isinstance(url, str) else None

    def of(self, url: str) -> dict[str, Any]:
        """Return what is kept for a platform."""
        kept = self._read().get("platforms", {}).get(url)
        return kept if isinstance(kept, dict) else {}

    def keep(self, url: str, entry: Mapping[str, Any]) -> None:
        """Keep a session or a token, in place of the platform's last one."""
        data = self._read()
        data["current"] = url
        data.setdefault("platforms", {})[url] = dict(entry)
        self._write(data)

    def forget(self, url: str) -> None:
        """Forget a platform."""
        data = self._read()
        data.get("platforms", {}).pop(url, None)
        if data.get("current") == url:
            data.pop("current")
        self._write(data)

    def _read(self) -> dict[str, Any]:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return {}
        if os.name == "posix" and status.st_mode & 0o077:
            raise UsageError(f"Others can read {self._path}: run `chmod 600` on it, or delete it.")
        try:
            data = json.loads(self._path.read_text())
        except ValueError as exc:
            raise UsageError(f"{self._path} is damaged: delete it and sign in again.") from exc
        if not isinstance(data, dict):
            raise UsageError(f"{self._path} is damaged: delete it and sign in again.")
        return data

    def _write(self, data: Mapping[str, Any]) -> None:
        """Replace the file at once: another command reads the old one or the new one."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made with mode 0600.
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".credentials-")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(data, file, indent=1)
            Path(name).replace(self._path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(name).unlink()
            raise


class FileStore:
    """The tokens of one platform, in the file that other commands use, too.

    A command ends in the environment that it began in: another one may have switched meanwhile.
    """

    def __init__(
        self, credentials: Credentials, url: str, *, switches_to: str | None = None
    ) -> None:
        """Read and write one entry; switches_to: the environment of the next pair to keep."""
        self._switches_to = switches_to
        self._credentials = credentials
        self._url = url
        self._environment = credentials.of(url).get("environment")

    def load(self) -> zonal.TokenPair | None:
        """Return the newest pair. Raises UsageError after a switch to another environment."""
        entry = self._credentials.of(self._url)
        if entry.get("environment") != self._environment:
            raise UsageError("Another command has switched to another environment: begin again.")
        kept = entry.get("tokens")
        try:
            return zonal.TokenPair(**kept) if kept else None
        except TypeError as exc:
            raise UsageError("The kept session is damaged: sign in again.") from exc

    def save(self, tokens: zonal.TokenPair | None) -> None:
        """Keep a pair; None forgets the platform."""
        if tokens is None:
            self._credentials.forget(self._url)
            return
        entry = self._credentials.of(self._url)
        entry.pop("token", None)
        self._environment = self._switches_to or self._environment
        kept = {"tokens": asdict(tokens), "environment": self._environment}
        self._credentials.keep(self._url, {**entry, **kept})


def credentials_of(environ: Mapping[str, str]) -> Credentials:
    """Return the user's file."""
    return Credentials(_folder(environ, "XDG_CONFIG_HOME", ".config") / "credentials.json")


def history_of(environ: Mapping[str, str]) -> Path:
    """Return the file of the SQL prompt's history."""
    return _folder(environ, "XDG_STATE_HOME", ".local/state") / "sql_history"


def place_of(url: str | None, environ: Mapping[str, str], credentials: Credentials) -> Place:
    """Return the platform to talk to: of --url or ZONAL_URL, else the last one signed in to."""
    chosen = url or credentials.current
    if not chosen:
        raise NotSignedInError(
            "Which platform? Run `zonal login --url https://…`, or set ZONAL_URL and ZONAL_TOKEN."
        )
    try:
        return Place(checked(chosen.rstrip("/"), allow_http=False), environ.get("ZONAL_TOKEN"))
    except ValueError as exc:
        raise UsageError(str(exc)) from exc


def client_of(
    place: Place, credentials: Credentials, *, switches_to: str | None = None
) -> zonal.Client:
    """Return a client that is signed in; switches_to: the environment that it goes on in."""
    kept = credentials.of(place.url)
    if place.token or kept.get("token"):
        return zonal.Client(place.url, token=place.token or kept["token"])
    if "tokens" not in kept:
        raise NotSignedInError(
            f"You are not signed in to {place.url}: run `zonal login`, or set ZONAL_TOKEN."
        )
    store = FileStore(credentials, place.url, switches_to=switches_to)
    return zonal.Client(place.url, store=store)


def _folder(environ: Mapping[str, str], variable: str, otherwise: str) -> Path:
    chosen = environ.get(variable, "")
    # The specification: a relative path is ignored.
    base = Path(chosen) if Path(chosen).is_absolute() else Path.home() / otherwise
    return base / "zonal"
