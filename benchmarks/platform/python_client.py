"""``SELECT 1`` by the Python client, compared with httpx: time and processor time of an answer."""

import logging
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from benchmarks.servers import PLATFORM, Shape, serve

sys.path.append(str(Path(__file__).resolve().parents[2] / "clients/python"))
QUERIES_IN_A_ROUND = 200


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the ratios. seconds: not used, because a round has a fixed number of queries."""
    # Without log lines, which would take half of the measured time.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with serve(PLATFORM, Shape(), probe="/readyz") as served:
        url = f"http://127.0.0.1:{served.port}"
        times, spent = ratios(url, identity["token"], rounds=rounds)
        print(
            f"an answer takes {times:.2f} times as long as httpx's, {spent:.2f} times the processor"
        )


def ratios(url: str, token: str, *, rounds: int) -> tuple[float, float]:
    """Return the client's time and processor time relative to httpx's, as medians over rounds."""
    import zonal  # noqa: PLC0415 - found through the path above

    headers = {"Authorization": f"Bearer {token}"}
    with (
        httpx.Client(base_url=url, headers=headers) as bare,
        zonal.Client(url, token=token) as ours,
    ):

        def plainly() -> None:
            answer = bare.post("/v1/sql", json={"query": "SELECT 1"})
            answer.raise_for_status()
            answer.json()

        def through_the_client() -> None:
            ours.sql.query("SELECT 1")

        _spent_s(plainly)
        _spent_s(through_the_client)
        pairs = [(_spent_s(through_the_client), _spent_s(plainly)) for _ in range(rounds)]
    return (
        statistics.median(client[0] / httpx_alone[0] for client, httpx_alone in pairs),
        statistics.median(client[1] / httpx_alone[1] for client, httpx_alone in pairs),
    )


def _spent_s(query: Callable[[], None]) -> tuple[float, float]:
    """Return the time of a round, and the processor time of this process."""
    began, busy = time.perf_counter(), time.process_time()
    for _ in range(QUERIES_IN_A_ROUND):
        query()
    return time.perf_counter() - began, time.process_time() - busy
