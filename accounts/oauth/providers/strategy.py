"""What social-core is told of one visit to a provider, and where it keeps what it must.

Its sessions are the visit's row; its storage is none, since that row is used once.
"""

from collections.abc import Mapping
from typing import Any, Final

from social_core.storage import BaseStorage, NonceMixin
from social_core.strategy import BaseStrategy

# What a return may say. Nothing else a caller sends reaches social-core, which takes some of its
# settings from the request (Apple's client id).
RETURNED: Final = ("code", "state", "error", "iss", "user")


class VisitNonces(NonceMixin):
    """social-core's guard against a second use, which the visit's row is already."""

    @classmethod
    def use(cls, server_url: str, timestamp: Any, salt: str) -> bool:
        """Say that a state is new: it is 256 random bits."""
        return True

    @classmethod
    def consume(cls, server_url: str, timestamp: int, salt: str) -> bool:
        """Say that a state was not used before: the row was claimed for this return."""
        return True


class VisitStorage(BaseStorage):
    """No storage but the visit's row."""

    nonce = VisitNonces


class VisitStrategy(BaseStrategy[str]):
    """What social-core is told of a visit.

    kept: what a browser's session would hold; social-core changes it, the visit's row keeps it.
    state: for the visit. returned: the parameters of the return.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        kept: dict[str, Any],
        state: str = "",
        returned: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(VisitStorage)
        self.options, self.kept, self.state = options, kept, state
        self.returned = {
            name: value for name, value in (returned or {}).items() if name in RETURNED
        }

    def get_setting(self, name: str) -> Any:
        """Give a setting by its bare name.

        Raises KeyError for the others, which have defaults.
        """
        return self.options[name]

    def get_request_data(self, merge: bool = True) -> dict[str, Any]:
        """Give the parameters of the return."""
        return dict(self.returned)

    def build_absolute_uri(self, path: str | None = None) -> str:
        """Give the callback's URL, which is absolute already."""
        return path or ""

    def session_get(self, name: str, default: Any = None) -> Any:
        """Read what the visit keeps."""
        return self.kept.get(name, default)

    def session_set(self, name: str, value: Any) -> None:
        """Have the visit keep something."""
        self.kept[name] = value

    def session_pop(self, name: str) -> Any:
        """Take out what the visit kept."""
        return self.kept.pop(name, None)
