"""social-core's storage, over the models of external sign-in.

An identity is what social-core calls a social auth. Accounts are created and matched after the
one-time code was exchanged (oauth.account_matching), so this storage finds identities and
creates nothing: the inherited methods that write have no model manager and fail.
"""

from typing import Any

from django.db.models import QuerySet
from social_django.storage import BaseDjangoStorage, DjangoNonceMixin, DjangoUserMixin

from accounts.models import User
from oauth.models import Identity


class IdentityStorage(DjangoUserMixin):
    """Identities, found by the provider's own id of the account and by nothing else."""

    @classmethod
    def user_model(cls) -> Any:
        """Return the model of users; social-django types it by the integer key that ours lacks."""
        return User

    @classmethod
    def get_social_auth(cls, provider: str, uid: str, id_key: str | None = None) -> Identity | None:
        """Return the identity of an account at a provider, with its user."""
        rows = Identity.unscoped.select_related("user")  # unscoped: this determines the user
        found: Identity | None = rows.filter(provider=provider, subject=uid).first()
        return found

    @classmethod
    def get_users_by_email(cls, email: str) -> QuerySet[User]:
        """Return no user: an e-mail address never associates an identity (associate_by_email)."""
        return User.unscoped.none()  # unscoped: no row


class StateStorage(DjangoNonceMixin):
    """The one-time use of ``state``, which the transaction's row already guarantees."""

    @classmethod
    def use(cls, server_url: str, timestamp: int, salt: str) -> bool:
        """Return True: a state is 256 random bits, and the column is unique."""
        return True

    @classmethod
    def consume(cls, server_url: str, timestamp: int, salt: str) -> bool:
        """Return True: ``transactions.claim`` has used the row up for this callback."""
        return True


class OAuthStorage(BaseDjangoStorage):
    """What social-core stores: nothing of its own."""

    user = IdentityStorage
    nonce = StateStorage
