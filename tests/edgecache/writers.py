"""Clients that write and delete while something happens to a brain or to its store."""

import hashlib
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect
from tests.waiting import wait_until

MIB = 2**20
WRITERS = 8
SIZES = (1000, 100_000, 3 * MIB)
# The least size of a part that is not the last one.
PART = 5 * MIB
ABSENT: Final = ""
PATIENCE_S: Final = 60.0


class Writers:
    """Clients that write until they are stopped.

    possible: what a key may have now: digests, ABSENT. It is one where the last request succeeded.
    successes: when, by writer. failures: how many requests failed.
    """

    def __init__(
        self,
        keys: Keys,
        url: str,
        *,
        count: int = WRITERS,
        sizes: Sequence[int] = SIZES,
        pause_s: float = 0.0,
        do_all: bool = False,
    ) -> None:
        """pause_s: of each writer after a request. do_all: upload in parts and delete as well."""
        self.possible: dict[str, set[str]] = {}
        self.successes: list[list[float]] = [[] for _ in range(count)]
        self.failures = 0
        self.refused: set[int] = set()
        self._keys, self._url, self._sizes = keys, url, sizes
        self._pause_s, self._do_all = pause_s, do_all
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(number,)) for number in range(count)
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

    @property
    def done(self) -> int:
        """Return how many requests succeeded."""
        return sum(map(len, self.successes))

    def wait_for(self, count: int) -> None:
        """Wait until this many more requests have succeeded."""
        wanted = self.done + count
        wait_until(lambda: self.done >= wanted, timeout_s=PATIENCE_S)

    def wait_for_each(self) -> None:
        """Wait until each writer has succeeded once more."""
        wanted = [len(times) + 1 for times in self.successes]
        wait_until(
            lambda: all(
                len(times) >= least for times, least in zip(self.successes, wanted, strict=True)
            ),
            timeout_s=PATIENCE_S,
        )

    def longest_pause_s(self, since: float) -> float:
        """Return the longest time that a writer was without a success. since: ``monotonic``."""
        return max(
            later - earlier
            for times in self.successes
            for earlier, later in itertools.pairwise(
                [since, *(at for at in times if at > since), time.monotonic()]
            )
        )

    def _write(self, number: int) -> None:
        client = connect(self._keys, self._url)
        for count in itertools.count():
            if self._is_over.wait(self._pause_s):
                break
            key, data = (
                f"{number}/{count}",
                secrets.token_bytes(self._sizes[count % len(self._sizes)]),
            )
            write, named = client.put_object, {"Bucket": "docs", "Key": key}
            if self._do_all and count % 10 == 9:
                write, data = partial(_upload, client), secrets.token_bytes(PART) + data
            digest = hashlib.sha256(data).hexdigest()
            is_written = self._try(number, key, digest, partial(write, **named, Body=data))
            if self._do_all and is_written and count % 4 == 3:
                self._try(number, key, ABSENT, partial(client.delete_object, **named))
        client.close()

    def _try(self, number: int, key: str, result: str, request: Callable[[], object]) -> bool:
        self.possible[key] = self.possible.get(key, {ABSENT}) | {result}
        try:
            request()
        except ClientError as exc:
            self.refused.add(exc.response["ResponseMetadata"]["HTTPStatusCode"])
        except BotoCoreError:
            pass
        else:
            self.possible[key] = {result}
            self.successes[number].append(time.monotonic())
            return True
        self.failures += 1
        time.sleep(0.05)
        return False


def _upload(client: Any, *, Body: bytes, **named: str) -> None:  # noqa: N803 - as boto3 names it
    upload = named | {"UploadId": client.create_multipart_upload(**named)["UploadId"]}
    parts = [
        {
            "PartNumber": number,
            "ETag": client.upload_part(**upload, PartNumber=number, Body=body)["ETag"],
        }
        for number, body in enumerate((Body[:PART], Body[PART:]), 1)
    ]
    client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})


def check(written: Writers, *clients: Any) -> None:
    """Check every key by one of the clients: what was acknowledged is there, or deleted."""
    for (key, possible), client in zip(
        written.possible.items(), itertools.cycle(clients), strict=False
    ):
        found = ABSENT
        try:
            body = client.get_object(Bucket="docs", Key=key)["Body"].read()
            found = hashlib.sha256(body).hexdigest()
        except client.exceptions.NoSuchKey:
            pass
        assert found in possible, f"{key} is {'other bytes' if found else 'lost'}"


def tenant(cluster: Cluster) -> tuple[Keys, Any]:
    """Return a new tenant with a bucket, and its client."""
    keys = cluster.tenant()
    client = connect(keys, cluster.url)
    client.create_bucket(Bucket="docs")
    return keys, client
