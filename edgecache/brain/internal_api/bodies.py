"""The platform's JSON bodies: all wrong fields are reported together, unknown ones refused."""

from collections.abc import Mapping
from typing import Any, Final

from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.errors import Invalid

ID_LIMIT: Final = 2**63


class Body:
    """The fields of one object. ``finish`` says what was wrong; nothing counts before."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """values: the decoded body, or the query."""
        self._values = values
        self._left = set(values)
        self._wrong: list[dict[str, str]] = []

    def text(self, name: str, *, limit: int, default: str | None = None) -> str:
        """Take a text; with a default it may be absent or null."""
        value = self._take(name)
        if value is None and default is not None:
            return default
        if isinstance(value, str) and len(value) <= limit and "\0" not in value:
            return value
        self.wrong(name, f"must be a text of at most {limit} characters")
        return ""

    def texts(self, name: str, *, limit: int, length: int) -> list[str]:
        """Take a list of texts; absent and null are an empty one. limit: how many; length: each."""
        value = self._take(name) or []
        if not isinstance(value, list) or len(value) > limit:
            self.wrong(name, f"must be a list of at most {limit} texts")
            return []
        if not all(isinstance(item, str) and len(item) <= length for item in value):
            self.wrong(name, f"must hold texts of at most {length} characters")
            return []
        return value

    def flag(self, name: str) -> bool | None:
        """Take true or false; None when it is absent or null."""
        value = self._take(name)
        if value is not None and not isinstance(value, bool):
            self.wrong(name, "must be true or false")
            return None
        return value

    def id(self, name: str, *, optional: bool = False) -> int | None:
        """Take a row's number. optional: None when it is absent or null."""
        value = _integer(self._take(name))
        if value is None and optional:
            return None
        if isinstance(value, int) and 0 < value < ID_LIMIT:
            return value
        self.wrong(name, "must be a positive number")
        return None

    def count(self, name: str, *, default: int) -> int:
        """Take a number from 0 on; the default when it is absent."""
        value = _integer(self._take(name))
        if value is None:
            return default
        if isinstance(value, int) and 0 <= value < ID_LIMIT:
            return value
        self.wrong(name, "must be a number from 0 on")
        return default

    def one_of(self, name: str, choices: tuple[str, ...], *, default: str = "") -> str:
        """Take one of a few words."""
        value = self._take(name)
        if value is None and default:
            return default
        if isinstance(value, str) and value in choices:
            return value
        self.wrong(name, f"must be one of {', '.join(choices)}")
        return ""

    def mapping(self, name: str) -> dict[str, Any]:
        """Take an object as it is; absent and null are an empty one."""
        value = self._take(name)
        if value is not None and not isinstance(value, dict):
            self.wrong(name, "must be an object")
            return {}
        return value or {}

    def tenant(self) -> Tenant:
        """Take whose call it is."""
        organization_id, environment_pk = self.id("organization_id"), self.id("environment_pk")
        return Tenant(organization_id or 0, environment_pk or 0)

    def wrong(self, name: str, message: str, *, code: str = "invalid") -> None:
        """Note what is wrong with a field."""
        self._wrong.append({"field": name, "code": code, "message": message})

    def finish(self) -> None:
        """Raise Invalid when anything was wrong, or a field is unknown."""
        for name in sorted(self._left):
            self.wrong(name[:64], "is not a field", code="unknown")
        if self._wrong:
            raise Invalid(self._wrong)

    def _take(self, name: str) -> Any:
        self._left.discard(name)
        return self._values.get(name)


def _integer(value: object) -> object:
    """Return a whole number as one, also where a query has it as text; anything else as it is."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    return None if value is None else value if type(value) is int else "wrong"


def tenant_of(query: Mapping[str, str]) -> Tenant:
    """Return whose call it is, from the query alone. Raises Invalid."""
    body = Body(query)
    tenant = body.tenant()
    body.finish()
    return tenant
