"""Prometheus metrics of sign-ins."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import Counter

from common.errors import PlatformError

SIGN_INS: Final = Counter(
    "zonal_sign_ins_total",
    "Users that were proven, by sign-in method: success, or pending where a step is still due.",
    ["method", "outcome", "second_factor"],
)
REFUSED: Final = Counter(
    "zonal_sign_ins_refused_total",
    "Sign-ins that were refused, by method and the error's code.",
    ["method", "reason"],
)


@contextmanager
def count_refusals(method: str) -> Iterator[None]:
    """Count the error that ends the block."""
    try:
        yield
    except PlatformError as error:
        REFUSED.labels(method, error.code).inc()
        raise
