"""The Python client of Zonal; its README shows how to use it."""

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
