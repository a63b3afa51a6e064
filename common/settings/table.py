"""Tables of settings: dataclasses whose fields are the rows of docs/settings.md.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class RecoverySettings:
        delay_s: int = integer("ZRECOVERY_DELAY_SECS", "Wait of …", default=86_400, unit="s")

    RECOVERY = load(RecoverySettings, env)

Each app has its tables in its ``conf.py``; a table has no base class. A field without a row is
computed there and passed to ``load``.

A row is its variable, a sentence, and by keyword: ``default``; ``unit``; ``shown``, which replaces
the default in the documentation; ``parse``, which converts the value or the default and raises
ValueError with a sentence about what is wrong, without the value: any of them may be a secret that
was put into the wrong setting.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from common.settings.env import TRUE, Env, SettingError

FALSE: Final = frozenset({"0", "false", "no", "off"})
POSTGRESQL_SCHEMES: Final = ("postgresql", "postgres")
ROW: Final = "setting"

Table = TypeVar("Table")
Parse = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting: its variable, what the documentation says of it, and how its value is read.

    read_text: converts a text that is not empty; raises ValueError as ``parse`` does.
    """

    variable: str
    sentence: str
    kind: str
    shown_default: str
    read_text: Parse
    default: Any = ""
    unit: str = ""
    parse: Parse | None = None
    aliases: tuple[str, ...] = ()
    is_secret: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return all variables of this row, the usual one first."""
        return (self.variable, *self.aliases)

    def read(self, env: Env) -> Any:
        """Return the value from the environment, or the default.

        Raises SettingError for an invalid value.
        """
        raw = next(filter(None, map(env.raw, self.names)), "")
        try:
            value = self.read_text(raw) if raw else self.default
            return value if self.parse is None else self.parse(value)
        except ValueError as exc:
            raise SettingError(self.variable, str(exc)) from exc


def text(
    variable: str, sentence: str, *, default: str = "", shown: str = "", parse: Parse | None = None
) -> Any:
    """Return the field of a string."""
    return _field(
        variable=variable,
        sentence=sentence,
        kind="text",
        read_text=str,
        default=default,
        shown_default=shown or default or "none",
        parse=parse,
    )


def integer(
    variable: str,
    sentence: str,
    *,
    default: int | None,
    unit: str = "",
    minimum: int = 0,
    maximum: int = 2**31,
    scale: int = 1,
    parse: Parse | None = None,
) -> Any:
    """Return the field of an integer within bounds; the default None means that there is none.

    scale: the value is multiplied by it, for example to get bytes.
    """

    def read(raw: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,18}", raw):
            raise ValueError("must be a whole number.")
        if not minimum <= int(raw) <= maximum:
            raise ValueError(f"must be from {minimum} to {maximum}.")
        return int(raw) * scale

    return _field(
        variable=variable,
        sentence=sentence,
        kind="integer",
        read_text=read,
        default=None if default is None else default * scale,
        shown_default="none" if default is None else str(default),
        unit=unit,
        parse=parse,
    )


def flag(variable: str, sentence: str, *, default: bool | None, shown: str = "") -> Any:
    """Return the field of a boolean, written as true/false, 1/0, yes/no or on/off.

    The default None means it is decided later.
    """

    def read(raw: str) -> bool:
        if raw.lower() not in TRUE | FALSE:
            raise ValueError("must be true or false.")
        return raw.lower() in TRUE

    return _field(
        variable=variable,
        sentence=sentence,
        kind="boolean",
        read_text=read,
        default=default,
        shown_default=shown or str(default).lower(),
    )


def choice(
    variable: str, sentence: str, *, options: tuple[str, ...], default: str = "", shown: str = ""
) -> Any:
    """Return the field of one of a few words; the default '' means it is decided later."""

    def read(raw: str) -> str:
        if raw not in options:
            raise ValueError(f"must be one of {', '.join(options)}.")
        return raw

    return _field(
        variable=variable,
        sentence=sentence,
        kind=" or ".join(options),
        read_text=read,
        default=default,
        shown_default=shown or default,
    )


def words(
    variable: str,
    sentence: str,
    *,
    default: tuple[str, ...] = (),
    shown: str = "",
    parse: Parse | None = None,
) -> Any:
    """Return the field of a comma-separated list."""
    return _field(
        variable=variable,
        sentence=sentence,
        kind="list",
        read_text=lambda raw: _split(raw) or default,
        default=default,
        shown_default=shown or ", ".join(default) or "none",
        parse=parse,
    )


def secret(
    variable: str,
    sentence: str,
    *,
    min_chars: int = 32,
    parse: Parse | None = None,
) -> Any:
    """Return the field of a secret of at least ``min_chars`` characters; '' when unset."""

    def read(raw: str) -> str:
        if len(raw) < min_chars:
            raise ValueError(f"must have at least {min_chars} characters.")
        return raw

    return _field(
        variable=variable,
        sentence=sentence,
        kind="secret",
        read_text=read,
        shown_default="none",
        parse=parse,
        is_secret=True,
    )


def secret_list(
    variable: str,
    sentence: str,
    *,
    min_chars: int = 32,
    aliases: tuple[str, ...] = (),
    parse: Parse | None = None,
) -> Any:
    """Return the field of a comma-separated list of secrets, the current one first."""

    def read(raw: str) -> tuple[str, ...]:
        values = _split(raw)
        if any(len(value) < min_chars for value in values):
            raise ValueError(f"must have at least {min_chars} characters in each secret.")
        return values

    return _field(
        variable=variable,
        sentence=sentence,
        kind="secrets",
        read_text=read,
        default=(),
        shown_default="none",
        parse=parse,
        aliases=aliases,
        is_secret=True,
    )


def url(
    variable: str,
    sentence: str,
    *,
    default: str = "",
    shown: str = "",
    schemes: tuple[str, ...] = ("https", "http"),
    parse: Parse | None = None,
) -> Any:
    """Return the field of a URL with one of the schemes; it may hold a password."""

    def read(raw: str) -> str:
        if _scheme(raw) not in schemes:
            raise ValueError(f"must be a URL starting with {' or '.join(schemes)}://.")
        return raw

    return _field(
        variable=variable,
        sentence=sentence,
        kind="URL",
        read_text=read,
        default=default,
        shown_default=shown or default or "none",
        parse=parse,
        is_secret=True,
    )


def load(table: type[Table], env: Env, **given: Any) -> Table:
    """Return a table with values from environment variables.

    given: values of fields that are not read, including those without a row.
    Raises SettingError for an invalid value.
    """
    values = {name: row.read(env) for name, row in rows(table).items() if name not in given}
    return table(**values, **given)


def rows(table: type) -> Mapping[str, SettingRow]:
    """Return the rows of a table by field name."""
    return {each.name: each.metadata[ROW] for each in fields(table) if ROW in each.metadata}


def _field(**parts: Any) -> Any:
    """Return a dataclass's field; a table made without an environment has the defaults."""
    row = SettingRow(**parts)
    return field(
        default_factory=lambda: row.read(Env({})), repr=not row.is_secret, metadata={ROW: row}
    )


def _scheme(address: str) -> str:
    try:
        return urlsplit(address).scheme
    except ValueError:
        # Its text would show the URL.
        return ""


def _split(raw: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in raw.split(",") if word.strip())
