"""Settings that keep operators honest: audits of their nodes, and limits of what they are credited.

A node is audited by a number of checks and bytes each day, from the brain's own addresses.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final, NamedTuple

from common.settings.table import (
    integer,
    words,
)

# Egress, where hits are counted.
CREDITED_BYTES: Final = 10 * 2**30


class Vantage(NamedTuple):
    """An address of this machine for checks. seen: the address that nodes see, behind a NAT."""

    local: str
    seen: str


def _vantages(words: tuple[str, ...]) -> tuple[Vantage, ...]:
    found = []
    for word in words:
        local, _, seen = word.partition("=")
        try:
            ours, theirs = ipaddress.ip_address(local), ipaddress.ip_address(seen or local)
        except ValueError:
            message = "must be like 10.0.0.5 or 10.0.0.5=203.0.113.7."
            raise ValueError(message) from None
        found.append(Vantage(str(ours), str(theirs)))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Audits of delivery."""

    max_checks: int = integer(
        "ZCACHE_AUDIT_LOOKS",
        "Maximum looks at what an operator's node delivers, for each node and day; 0: none.",
        default=440,
        maximum=1_000_000,
    )
    vantages: tuple[Vantage, ...] = words(
        "ZCACHE_AUDIT_ADDRESSES",
        "Addresses of this machine that the brain looks from, each `local`, or `local=public` "
        "behind a NAT; best ones that are used for nothing else.",
        parse=_vantages,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditLimits:
    """Limits of what an operator is credited for, by client network, bucket, node and hour.

    Those of a machine; each of its brains has its part.
    """

    hits: int = integer(
        "ZCACHE_CREDIT_HITS",
        "Hits from one network of clients (/24, /56) that an operator is credited for, by "
        "bucket, node, hour and machine.",
        default=10_000,
    )
    limit_bytes: int = CREDITED_BYTES
