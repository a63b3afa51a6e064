"""The Python client of Zonal; its README shows how to use it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zonal._async.client import AsyncClient
    from zonal._async.rows import AsyncRows
    from zonal._async.sql import AsyncTransaction
    from zonal._sync.client import Client
    from zonal._sync.rows import Rows
    from zonal._sync.sql import Transaction
    from zonal.browser import BrowserSignIn
    from zonal.errors import (
        AuthenticationError,
        ConflictError,
        ConnectionFailedError,
        EnrolmentRequiredError,
        NotFoundError,
        PermissionDeniedError,
        ProblemError,
        RateLimitError,
        SecondFactorRequiredError,
        ServerError,
        SqlError,
        StreamCutError,
        UnexpectedAnswerError,
        UnreadableAnswerError,
        ZonalError,
    )
    from zonal.retries import Retries
    from zonal.tokens import MemoryStore, TokenStore
    from zonal.types import Challenge, SqlAnswer, TokenPair

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncRows",
    "AsyncTransaction",
    "AuthenticationError",
    "BrowserSignIn",
    "Challenge",
    "Client",
    "ConflictError",
    "ConnectionFailedError",
    "EnrolmentRequiredError",
    "MemoryStore",
    "NotFoundError",
    "PermissionDeniedError",
    "ProblemError",
    "RateLimitError",
    "Retries",
    "Rows",
    "SecondFactorRequiredError",
    "ServerError",
    "SqlAnswer",
    "SqlError",
    "StreamCutError",
    "TokenPair",
    "TokenStore",
    "Transaction",
    "UnexpectedAnswerError",
    "UnreadableAnswerError",
    "ZonalError",
]

if not TYPE_CHECKING:
    # A module comes after those that it loads.
    _MODULES = (
        "errors",
        "retries",
        "types",
        "tokens",
        "browser",
        "_sync.client",
        "_sync.rows",
        "_sync.sql",
        "_async.client",
        "_async.rows",
        "_async.sql",
    )

    def __getattr__(name):
        """Load a name when it is first used.

        A shell starts the command at each Tab; httpx and the client take most of the time to start.
        """
        if name in __all__:
            for each in _MODULES:
                module = import_module(f"{__name__}.{each}")
                if hasattr(module, name):
                    return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
