"""Settings of interactive transactions: how many, how long, and where their process is reached."""

from dataclasses import dataclass
from typing import Annotated

from common.settings.table import Integer, Text


# Without slots: a class inherits from several tables only if at most one has them.
@dataclass(frozen=True, kw_only=True)
class TransactionSettings:
    """Limits of interactive transactions; a part of SqlSettings."""

    transactions: Annotated[
        int,
        Integer(
            "ZSQL_TRANSACTIONS",
            "Open interactive transactions per process.",
            default=8,
            minimum=0,
            maximum=1000,
        ),
    ]
    transactions_per_organization: Annotated[
        int,
        Integer(
            "ZSQL_TRANSACTIONS_PER_ORGANIZATION",
            "Open interactive transactions of one organization.",
            default=4,
            minimum=0,
            maximum=1000,
        ),
    ]
    transactions_per_environment: Annotated[
        int,
        Integer(
            "ZSQL_TRANSACTIONS_PER_ENVIRONMENT",
            "Open interactive transactions of one environment.",
            default=4,
            minimum=0,
            maximum=1000,
        ),
    ]
    transaction_idle_s: Annotated[
        int,
        Integer(
            "ZSQL_TRANSACTION_IDLE_S",
            "An interactive transaction without a statement is rolled back after this time.",
            default=10,
            unit="seconds",
            minimum=1,
            maximum=600,
        ),
    ]
    transaction_life_s: Annotated[
        int,
        Integer(
            "ZSQL_TRANSACTION_LIFE_S",
            "An interactive transaction is rolled back at this age.",
            default=60,
            unit="seconds",
            minimum=1,
            maximum=3600,
        ),
    ]
    channel_host: Annotated[
        str,
        Text(
            "ZSQL_CHANNEL_HOST",
            "Address at which the platform's other web processes reach this one, to forward "
            "statements of its interactive transactions.",
            default="127.0.0.1",
        ),
    ]
