"""All requests of these tests go through a real PgBouncer."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.pg import pool
from tests.sqlgateway.pooler.pgbouncer import PgBouncer, program


@pytest.fixture(scope="session")
def pooler() -> Iterator[PgBouncer]:
    """Return a running PgBouncer that pools sessions."""
    if program() is None:
        pytest.skip("PgBouncer is not installed (Debian: apt-get install pgbouncer).")
    made = PgBouncer()
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture(autouse=True)
def _behind(pooler: PgBouncer) -> Iterator[None]:
    with override_settings(SQL=replace(settings.SQL, cluster_url=pooler.url)):
        yield
        pool.CONNECTION_POOL.clear()
