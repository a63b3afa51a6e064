"""Run functions concurrently, each with its own connection."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from django.db import connection

from common.scoping import unscoped

Given = TypeVar("Given")


def at_once(*calls: Callable[[], Given]) -> Sequence[Given]:
    """Run all functions at the same moment; return their results in order."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], Given]) -> Given:
        try:
            barrier.wait(timeout=10)
            with unscoped("tests arrange rows"):
                return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
