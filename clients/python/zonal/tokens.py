"""Where a signed-in client keeps its tokens."""

from typing import Callable, Optional, Protocol

from zonal.types import TokenPair


class TokenStore(Protocol):
    """What a client reads its tokens from and writes them to; several processes may share one.

    A refresh token works once. A client therefore loads before it refreshes, in case that another
    process has refreshed meanwhile, and saves before it uses the new pair.
    """

    def load(self) -> Optional[TokenPair]:
        """Return the newest pair, None while signed out."""

    def save(self, tokens: Optional[TokenPair]) -> None:
        """Keep a pair in place of the last one; None after a sign-out."""


class MemoryStore:
    """Tokens of this process; on_change is called with each new pair, to keep it elsewhere."""

    def __init__(
        self,
        tokens: Optional[TokenPair] = None,
        on_change: Optional[Callable[[Optional[TokenPair]], None]] = None,
    ) -> None:
        """Begin with a pair, or signed out."""
        self._tokens = tokens
        self._on_change = on_change

    def load(self) -> Optional[TokenPair]:
        """Return the pair."""
        return self._tokens

    def save(self, tokens: Optional[TokenPair]) -> None:
        """Keep a pair and announce it."""
        self._tokens = tokens
        if self._on_change is not None:
            self._on_change(tokens)
