"""Clients that write while something happens to a brain or to its store."""

import hashlib
import secrets
import threading
import time
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect

MIB = 2**20
WRITERS = 8
SIZES = (1000, 100_000, 3 * MIB)


class Writers:
    """Clients that write until they are stopped. acknowledged: digests by key."""

    def __init__(self, keys: Keys, url: str) -> None:
        self.acknowledged: dict[str, str] = {}
        self.attempted: dict[str, str] = {}
        self.refused: set[int] = set()
        self._keys, self._url = keys, url
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)
        ]

    def __enter__(self) -> "Writers":
        """Start."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop, and wait."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, count: int) -> None:
        """Wait until this many more writes are acknowledged."""
        wanted = len(self.acknowledged) + count
        end = time.monotonic() + 60
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < end, "no more writes succeed"
            time.sleep(0.02)

    def _write(self, number: int) -> None:
        client = connect(self._keys, self._url)
        count = 0
        while not self._is_over.is_set():
            key, data = f"{number}/{count}", secrets.token_bytes(SIZES[count % len(SIZES)])
            digest = self.attempted[key] = hashlib.sha256(data).hexdigest()
            count += 1
            try:
                client.put_object(Bucket="docs", Key=key, Body=data)
            except ClientError as exc:
                self.refused.add(exc.response["ResponseMetadata"]["HTTPStatusCode"])
                time.sleep(0.05)
            except BotoCoreError:
                time.sleep(0.05)
            else:
                self.acknowledged[key] = digest
        client.close()


def check(client: Any, written: Writers) -> None:
    """Check that every acknowledged object is there, and that the others are whole or absent."""
    for key, digest in written.attempted.items():
        try:
            found = client.get_object(Bucket="docs", Key=key)["Body"].read()
        except client.exceptions.NoSuchKey:
            assert key not in written.acknowledged, f"{key} is lost"
            continue
        assert hashlib.sha256(found).hexdigest() == digest, f"{key} is torn"


def tenant(cluster: Cluster) -> tuple[Keys, Any]:
    """Return a new tenant with a bucket, and its client."""
    keys = cluster.tenant()
    client = connect(keys, cluster.url)
    client.create_bucket(Bucket="docs")
    return keys, client
