"""Tables of settings: dataclasses whose annotated fields are the rows of docs/settings.md.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class RecoverySettings:
        delay_s: Annotated[int, Integer("ZRECOVERY_DELAY_SECS", "Wait of …", default=86400)]

    RECOVERY = load(RecoverySettings, env)

Each app has its tables in its ``conf.py``. A field without a row is computed there and passed to
``load``.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Final, TypeVar, get_type_hints
from urllib.parse import urlsplit

from common.settings.env import TRUE, Env, SettingError

FALSE: Final = frozenset({"0", "false", "no", "off"})
POSTGRESQL_SCHEMES: Final = ("postgresql", "postgres")

Table = TypeVar("Table")


@dataclass(frozen=True, slots=True)
class SettingRow(ABC):
    """One setting: its variable, a sentence, its default, its unit and how its value is read.

    shown: replaces the default in the documentation. parse: converts the value or the default;
    raises ValueError with a sentence about what is wrong, without the value: any of them may be a
    secret that was put into the wrong setting.
    """

    variable: str
    sentence: str
    _: KW_ONLY
    default: Any = ""
    unit: str = ""
    shown: str = ""
    parse: Callable[[Any], Any] | None = None

    is_secret: ClassVar[bool] = False

    @property
    @abstractmethod
    def kind(self) -> str:
        """Return the type's name in the documentation."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return all variables of this row, the usual one first."""
        return (self.variable,)

    @property
    def shown_default(self) -> str:
        """Return the default for the documentation."""
        return self.shown or str(self.default) or "none"

    def read(self, env: Env) -> Any:
        """Return the value from the environment, or the default.

        Raises SettingError for an invalid value.
        """
        value = self._value(env)
        if self.parse is None:
            return value
        try:
            return self.parse(value)
        except ValueError as exc:
            raise SettingError(self.variable, str(exc)) from exc

    @abstractmethod
    def _value(self, env: Env) -> Any:
        """Return the variable's value, or the default; raises SettingError for a wrong one."""


@dataclass(frozen=True, slots=True)
class Text(SettingRow):
    """A string."""

    kind = "text"

    def _value(self, env: Env) -> str:
        return env.raw(self.variable) or self.default


@dataclass(frozen=True, slots=True)
class Integer(SettingRow):
    """An integer within bounds. scale: the value is multiplied by it, for example to get bytes."""

    _: KW_ONLY
    default: int
    minimum: int = 0
    maximum: int = 2**31
    scale: int = 1

    kind = "integer"

    def _value(self, env: Env) -> int:
        raw = env.raw(self.variable)
        if not raw:
            return self.default * self.scale
        if not re.fullmatch(r"-?[0-9]{1,18}", raw):
            raise SettingError(self.variable, "must be a whole number.")
        if not self.minimum <= int(raw) <= self.maximum:
            raise SettingError(self.variable, f"must be from {self.minimum} to {self.maximum}.")
        return int(raw) * self.scale


@dataclass(frozen=True, slots=True)
class Flag(SettingRow):
    """A boolean, written as true/false, 1/0, yes/no or on/off; None means it is decided later."""

    _: KW_ONLY
    default: bool | None

    kind = "boolean"

    @property
    def shown_default(self) -> str:
        """Return the default in lower case."""
        return self.shown or str(self.default).lower()

    def _value(self, env: Env) -> bool | None:
        raw = env.raw(self.variable).lower()
        if raw and raw not in TRUE | FALSE:
            raise SettingError(self.variable, "must be true or false.")
        return raw in TRUE if raw else self.default


@dataclass(frozen=True, slots=True)
class Choice(SettingRow):
    """One of a few words; the default '' means it is decided later."""

    _: KW_ONLY
    options: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Return the words."""
        return " or ".join(self.options)

    def _value(self, env: Env) -> str:
        value = env.raw(self.variable) or self.default
        if value and value not in self.options:
            raise SettingError(self.variable, f"must be one of {', '.join(self.options)}.")
        return str(value)


@dataclass(frozen=True, slots=True)
class Words(SettingRow):
    """A comma-separated list."""

    _: KW_ONLY
    default: tuple[str, ...] = ()

    kind = "list"

    @property
    def shown_default(self) -> str:
        """Return the default in the variable's format."""
        return self.shown or ", ".join(self.default) or "none"

    def _value(self, env: Env) -> tuple[str, ...]:
        return _split(env.raw(self.variable)) or self.default


@dataclass(frozen=True, slots=True)
class Secret(SettingRow):
    """A secret of at least ``min_chars`` characters; '' when unset."""

    _: KW_ONLY
    min_chars: int = 32
    aliases: tuple[str, ...] = ()

    kind = "secret"
    is_secret = True

    @property
    def names(self) -> tuple[str, ...]:
        """Return the variable and its aliases."""
        return (self.variable, *self.aliases)

    def _value(self, env: Env) -> str:
        value = next(filter(None, map(env.raw, self.names)), "")
        if value and len(value) < self.min_chars:
            raise SettingError(self.variable, f"must have at least {self.min_chars} characters.")
        return value


@dataclass(frozen=True, slots=True)
class Secrets(SettingRow):
    """A comma-separated list of secrets, the current one first."""

    _: KW_ONLY
    min_chars: int = 32

    kind = "secrets"
    is_secret = True

    def _value(self, env: Env) -> tuple[str, ...]:
        values = _split(env.raw(self.variable))
        if any(len(value) < self.min_chars for value in values):
            raise SettingError(
                self.variable, f"must have at least {self.min_chars} characters in each secret."
            )
        return values


@dataclass(frozen=True, slots=True)
class Url(SettingRow):
    """A URL with one of the schemes."""

    _: KW_ONLY
    schemes: tuple[str, ...] = field(default=("https", "http"))

    kind = "URL"
    is_secret = True

    def _value(self, env: Env) -> str:
        value = env.raw(self.variable) or self.default
        if value and _scheme(value) not in self.schemes:
            raise SettingError(
                self.variable, f"must be a URL starting with {' or '.join(self.schemes)}://."
            )
        return str(value)


def load(table: type[Table], env: Env, **given: Any) -> Table:
    """Return a table with values from environment variables.

    given: values of fields that are not read, including those without a row.
    Raises SettingError for an invalid value.
    """
    values = {name: row.read(env) for name, row in rows(table).items() if name not in given}
    return table(**values, **given)


def rows(table: type) -> Mapping[str, SettingRow]:
    """Return the rows of a table by field name."""
    return {
        name: row
        for name, hint in get_type_hints(table, include_extras=True).items()
        for row in getattr(hint, "__metadata__", ())
        if isinstance(row, SettingRow)
    }


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        # Its text would show the URL.
        return ""


def _split(raw: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in raw.split(",") if word.strip())
