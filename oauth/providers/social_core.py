"""social-core's view of one OAuth transaction: its settings, session and storage, and the callback.

social-django's strategy reads all of these from Django's settings, the browser's session and the
request. Here the settings are one provider's, the session is the transaction's row, and the
strategy never gets the request: neither the Host header nor a parameter outside of
``CALLBACK_PARAMETERS`` can reach social-core.

An identity is what social-core calls a social auth. Accounts are created and matched after the
one-time code was exchanged (oauth.account_matching), so the storage finds identities and creates
nothing: the inherited methods that write have no model manager and fail.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin

from django.conf import settings
from django.db.models import QuerySet
from social_django.storage import BaseDjangoStorage, DjangoNonceMixin, DjangoUserMixin
from social_django.strategy import DjangoStrategy

from accounts.models import User
from common.scoping import unscoped
from oauth.models import Identity

# social-core takes some of its settings from the request, such as Apple's client id.
CALLBACK_PARAMETERS: Final = ("code", "state", "error", "iss", "user")


class IdentityStorage(DjangoUserMixin):
    """Identities, found by the provider's own id of the account and by nothing else."""

    @classmethod
    def user_model(cls) -> Any:
        """Return the model of users; social-django types it by the integer key that ours lacks."""
        return User

    @classmethod
    def get_social_auth(cls, provider: str, uid: str, id_key: str | None = None) -> Identity | None:
        """Return the identity of an account at a provider, with its user."""
        with unscoped("the identity determines the user"):
            rows = Identity.objects.select_related("user")
        found: Identity | None = rows.filter(provider=provider, subject=uid).first()
        return found

    @classmethod
    def get_users_by_email(cls, email: str) -> QuerySet[User]:
        """Return no user: an e-mail address never associates an identity (associate_by_email)."""
        with unscoped("no row"):
            return User.objects.none()


class StateStorage(DjangoNonceMixin):
    """The one-time use of ``state``, which the transaction's row already guarantees."""

    @classmethod
    def use(cls, server_url: str, timestamp: int, salt: str) -> bool:
        """Return True: a state is 256 random bits, and the column is unique."""
        return True

    @classmethod
    def consume(cls, server_url: str, timestamp: int, salt: str) -> bool:
        """Return True: ``flow_state.claim`` has used the row up for this callback."""
        return True


class OAuthStorage(BaseDjangoStorage):
    """What social-core stores: nothing of its own."""

    user = IdentityStorage
    nonce = StateStorage


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
