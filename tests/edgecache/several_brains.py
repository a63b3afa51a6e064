"""Brains of several machines: one database, one store, a folder for each."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from tests.edgecache.cluster import Cluster
from tests.edgecache.databases import brain_database

Brains = Callable[..., Cluster]


@contextmanager
def several_brains(parent: Path, store: dict[str, str]) -> Iterator[Brains]:
    """Yield a factory of brains. parent: of their folders. store: its settings."""
    running: list[Cluster] = []
    secret_keys = Fernet.generate_key().decode()
    with brain_database() as url:

        def begin(**changes: Any) -> Cluster:
            folder = parent / f"brain{len(running)}"
            folder.mkdir()
            variables = store | changes.pop("variables", {})
            cluster = Cluster(folder, url, secret_keys, variables=variables, **changes)
            if running:
                cluster.secret = running[0].secret
            running.append(cluster)
            return cluster.start()

        try:
            yield begin
        finally:
            for cluster in reversed(running):
                cluster.end()
