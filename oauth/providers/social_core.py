"""social-core's view of one OAuth transaction: its settings, its session, the callback's data.

social-django's strategy reads all of these from Django's settings, the browser's session and the
request. Here the settings are one provider's, the session is the transaction's row, and the
strategy never gets the request: neither the Host header nor a parameter outside of
``CALLBACK_PARAMETERS`` can reach social-core.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin

from django.conf import settings
from social_django.strategy import DjangoStrategy

from oauth.providers.storage import OAuthStorage

# social-core takes some of its settings from the request, such as Apple's client id.
CALLBACK_PARAMETERS: Final = ("code", "state", "error", "iss", "user")


class TransactionStrategy(DjangoStrategy):
    """The strategy of one transaction.

    options: social-core's settings by their bare names. session: what social-core keeps between
    start and callback; it is changed in place, and the caller stores it. state: of a new
    transaction. callback: the parameters of a callback.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        session: dict[str, Any],
        state: str = "",
        callback: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(OAuthStorage)
        self.options, self.transaction_session, self.state = options, session, state
        self.callback = {
            name: value for name, value in (callback or {}).items() if name in CALLBACK_PARAMETERS
        }

    def get_setting(self, name: str) -> Any:
        """Return a setting by its bare name, or raise KeyError, upon which a default is used."""
        return self.options[name]

    def get_request_data(self, merge: bool = True) -> dict[str, Any]:
        """Return the allowed parameters of the callback."""
        return dict(self.callback)

    def build_absolute_uri(self, path: str | None = None) -> str:
        """Return a URL below the configured base; the request's host has no influence."""
        return urljoin(settings.OAUTH.redirect_base_url, path or "")

    def session_get(self, name: str, default: Any = None) -> Any:
        """Return a value of the transaction's session."""
        return self.transaction_session.get(name, default)

    def session_set(self, name: str, value: Any) -> None:
        """Set a value of the transaction's session."""
        self.transaction_session[name] = value

    def session_pop(self, name: str) -> Any:
        """Remove a value of the transaction's session and return it."""
        return self.transaction_session.pop(name, None)

    def session_setdefault(self, name: str, value: Any) -> Any:
        """Return a value of the transaction's session, set first if it is missing."""
        return self.transaction_session.setdefault(name, value)
