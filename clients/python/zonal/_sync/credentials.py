"""What authorizes requests: a token as it is, or a session's tokens, refreshed when due."""

from collections.abc import Callable
from typing import Optional

from zonal._sync.waiting import Lock
from zonal.tokens import TokenStore
from zonal.types import TokenPair

Refresh = Callable[[str], TokenPair]


class Credentials:
    """The access token of a client; one refresh at a time, however many requests wait for it."""

    def __init__(self, token: Optional[str], store: TokenStore) -> None:
        """Take a token that is never refreshed, or a store."""
        self._fixed = token
        self._store = store
        self._pair = None if token else store.load()
        self._lock = Lock()

    @property
    def token(self) -> Optional[str]:
        """The bearer token, None while signed out."""
        return self._fixed or (self._pair.access_token if self._pair else None)

    @property
    def pair(self) -> Optional[TokenPair]:
        """The session's tokens, None with a fixed token."""
        return self._pair

    def keep(self, pair: Optional[TokenPair]) -> None:
        """Use and store a session's tokens from now on; None signs out."""
        self._fixed = None
        self._pair = pair
        self._store.save(pair)

    def renew(self, refused: Optional[str], refresh: Refresh) -> bool:
        """Replace an expired token; return whether there is another one now.

        The clock of this machine is not asked: the platform says when a token has expired.
        """
        if self._fixed is not None:
            return False
        with self._lock:
            if self.token != refused:
                return True
            newest = self._store.load()
            if newest is None:
                return False
            if newest.access_token == refused:
                newest = refresh(newest.refresh_token)
                self._store.save(newest)
            self._pair = newest
            return True
