"""What authorizes requests: a token as it is, or a session's tokens, refreshed when due."""

from collections.abc import Awaitable, Callable
from typing import Optional, TypeVar

from zonal._async.waiting import Lock
from zonal.errors import AuthenticationError, ZonalError
from zonal.tokens import TokenStore
from zonal.types import TokenPair

T = TypeVar("T")
Refresh = Callable[[str], Awaitable[TokenPair]]


class AsyncCredentials:
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

    def keep(self, pair: Optional[TokenPair]) -> None:
        """Use and store a session's tokens from now on; None signs out."""
        self._fixed = None
        self._pair = pair
        self._store.save(pair)

    async def spend(self, use: Callable[[str], Awaitable[T]]) -> T:
        """Return what a function makes of the stored refresh token, for a switch or the end.

        Raises ZonalError without a session.
        """
        async with self._lock:
            pair = None if self._fixed else self._store.load()
            if pair is None:
                raise ZonalError("This client has no session of a sign-in.")
            try:
                return await use(pair.refresh_token)
            except AuthenticationError as problem:
                return await use(self._stored_since(pair, problem).refresh_token)

    async def renew(
        self, refused: Optional[str], refresh: Refresh, *, is_superseded: bool = False
    ) -> bool:
        """Replace a refused token; return whether there is another one now.

        is_superseded: True if a newer one has replaced it: the stored pair is used, and an older
        refresh token is not sent, which would end the sign-in.

        The clock of this machine is not asked: the platform says when a token has expired.
        """
        if self._fixed is not None:
            return False
        async with self._lock:
            if self.token != refused:
                return True
            newest = self._store.load()
            if newest is None:
                return False
            if newest.access_token == refused:
                if is_superseded:
                    return False
                newest = await self._refreshed(newest, refresh)
            self._pair = newest
            return True

    async def _refreshed(self, pair: TokenPair, refresh: Refresh) -> TokenPair:
        try:
            newest = await refresh(pair.refresh_token)
        except AuthenticationError as problem:
            return self._stored_since(pair, problem)
        self._store.save(newest)
        return newest

    def _stored_since(self, pair: TokenPair, problem: AuthenticationError) -> TokenPair:
        """Return the pair that another process has stored meanwhile; else raise the refusal."""
        newest = self._store.load()
        if problem.code != "token_superseded" or newest is None or newest == pair:
            raise problem
        return newest
