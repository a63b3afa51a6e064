"""``SELECT 1`` through the Python client beside bare httpx: processor time of the process."""

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
    """Print the ratio. seconds: of no use here, rounds are of a number of queries."""
    with serve(PLATFORM, Shape(), probe="/readyz") as served:
        url = f"http://127.0.0.1:{served.port}"
        print(f"processor time {ratio(url, identity['token'], rounds=rounds):.2f} times httpx's")


def ratio(url: str, token: str, *, rounds: int) -> float:
    """Return the client's processor time by httpx's, the median of alternating rounds."""
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
        return statistics.median(
            _spent_s(through_the_client) / _spent_s(plainly) for _ in range(rounds)
        )


def _spent_s(query: Callable[[], None]) -> float:
    began = time.process_time()
    for _ in range(QUERIES_IN_A_ROUND):
        query()
    return time.process_time() - began
