"""A file is altered on both workers: no client gets an altered byte, and the file is made again."""

import hashlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.edgecache.alterations import cut, flip, replace
from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster, Keys, until
from tests.edgecache.conftest import connect
from tests.edgecache.databases import own_files

pytestmark = pytest.mark.slow

SIZE = 3 * 2**20 + 11


class Stored:
    """An object that both workers and the brain hold. body: other bytes in each test."""

    def __init__(self, cluster: Cluster, keys: Keys, size: int = SIZE) -> None:
        self.cluster = cluster
        self.body = os.urandom(size)
        self.signer = Signer(keys, cluster.url)
        self.s3 = connect(keys, cluster.url)
        self.s3.put_object(Bucket="docs", Key="key", Body=self.body)
        self.sha256 = hashlib.sha256(self.body).digest()
        until(lambda: len(self.files()) == 2 and self.holders() == 2, seconds=60)

    def files(self) -> list[Path]:
        """Return the workers' files of it."""
        name = self.sha256.hex()
        places = [f"worker{number}/objects/{name[:2]}/{name}" for number in range(2)]
        paths = [self.cluster.folder / place for place in places]
        return [path for path in paths if path.exists()]

    def own_file(self) -> Path:
        """Return the brain's file of it."""
        folder = self.cluster.folder / "brain"
        (file,) = own_files(self.cluster.database_url, folder, self.sha256)
        return file

    def holders(self) -> int:
        """Return how many nodes hold it, by the directory."""
        with psycopg.connect(self.cluster.database_url, autocommit=True) as connection:
            found = connection.execute(
                "SELECT node_id FROM brain_location WHERE blob_id = %s", [self.sha256]
            )
            return len(found.fetchall())

    def worker_reads(self) -> list[str]:
        """Return what the workers say of their reads."""
        said: list[str] = []
        for node in self.cluster.nodes:
            text = send(node["endpoint"], "GET", "/metrics").body.decode()
            said += [line for line in text.splitlines() if "worker_reads_total " in line]
        return said

    def bytes_served(self) -> int:
        """Return what the cache has sent."""
        return int(self.cluster.call("GET", "/v1/metrics")["bytes_served"])

    def read(self, start: int, end: int) -> bytes:
        """Return bytes start to end - 1."""
        said = self.signer.send("GET", "/docs/key", headers={"range": f"bytes={start}-{end - 1}"})
        assert said.status == 206
        return said.body


@pytest.fixture
def stored(cluster: Cluster, keys: Keys, bucket: str) -> Stored:
    """Return a new object."""
    assert bucket == "docs"
    return Stored(cluster, keys)


@pytest.mark.parametrize("alter", [flip, replace, cut])
def test_no_range_of_an_altered_file_is_sent(stored: Stored, alter: Callable[[Path], None]) -> None:
    assert stored.read(0, 100) == stored.body[:100]
    for file in stored.files():
        alter(file)
    middle = SIZE // 2
    for start in range(middle - 2 * 2**17, middle + 2 * 2**17, 2**15):
        assert stored.read(start, start + 2**15 + 3) == stored.body[start : start + 2**15 + 3]
    assert stored.signer.send("GET", "/docs/key").body == stored.body

    until(lambda: len(stored.files()) == 2 and stored.holders() == 2)
    assert {file.read_bytes() for file in stored.files()} == {stored.body}


def test_a_redirected_client_gets_nothing_of_an_altered_file(stored: Stored) -> None:
    def redirected() -> Any:
        answer = stored.signer.send("GET", "/docs/key", headers={"x-zonal-redirect": "1"})
        return urlsplit(answer.headers["location"]) if answer.status == 307 else None

    def follow(place: Any) -> tuple[int, bytes]:
        answer = send(f"http://{place.netloc}", "GET", f"{place.path}?{place.query}")
        return answer.status, answer.body

    assert follow(redirected()) == (200, stored.body)
    for file in stored.files():
        flip(file)
    place = redirected()
    assert follow(place)[0] == 404
    # Without a redirect the brain sends it.
    assert stored.signer.send("GET", "/docs/key").body == stored.body


def test_a_large_object_is_sent_from_the_file_of_the_brain_itself(stored: Stored) -> None:
    def is_own() -> bool:
        before = stored.worker_reads()
        assert stored.signer.send("GET", "/docs/key").body == stored.body
        assert stored.read(1, 300_000) == stored.body[1:300_000]
        return stored.worker_reads() == before

    # Its last change must be older than a second.
    until(is_own)
    used = stored.bytes_served()
    leave_early(stored)
    until(lambda: stored.bytes_served() > used)
    flip(stored.own_file())
    assert stored.signer.send("GET", "/docs/key").body == stored.body
    assert not is_own()


def leave_early(stored: Stored) -> None:
    """Ask for an object, read the beginning and go."""
    headers = stored.signer.sign("GET", "/docs/key")
    lines = [f"{name}: {value}" for name, value in headers.items()]
    with socket.socket() as client:
        # So that the kernel does not take all of it.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # With a reset: the brain waits a minute for one that only stops reading.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.connect(("127.0.0.1", stored.cluster.port))
        client.sendall("\r\n".join(["GET /docs/key HTTP/1.1", *lines, "", ""]).encode())
        received = 0
        # More than the head: a client that leaves before the body got nothing of it.
        while received < 2**16:
            received += len(client.recv(2**16))


def test_an_altered_file_of_the_brain_is_an_error(stored: Stored) -> None:
    flip(stored.own_file())
    assert stored.signer.send("GET", "/docs/key").body == stored.body
    for file in stored.files():
        flip(file)
    middle = SIZE // 2
    wanted = {"range": f"bytes={middle}-{middle + 9}"}
    assert stored.signer.send("GET", "/docs/key", headers=wanted).status == 502
    assert stored.read(0, 100) == stored.body[:100]
    # Nor does a copy get the altered bytes under a name of their own.
    stored.s3.create_bucket(Bucket="other")
    copied = {"x-amz-copy-source": "/docs/key", "x-amz-copy-source-range": "bytes=0-3145737"}
    upload = stored.s3.create_multipart_upload(Bucket="other", Key="copy")["UploadId"]
    target = f"/other/copy?partNumber=1&uploadId={upload}"
    assert stored.signer.send("PUT", target, headers=copied).status == 502


@pytest.mark.parametrize("alter", [flip, cut])
def test_no_worker_is_blamed_for_a_damaged_file_of_the_brain(
    stored: Stored, alter: Callable[[Path], None]
) -> None:
    alter(stored.own_file())
    for file in stored.files():
        flip(file)
    middle = SIZE // 2
    stored.signer.send("GET", "/docs/key", headers={"range": f"bytes={middle}-{middle + 9}"})
    # The workers' copies are gone, and it is asked for new ones.
    damage = f'"sha256":"{stored.sha256.hex()}","event":"local_file_damaged"'
    until(lambda: damage in stored.cluster.log)
    assert '"reason":"store_refused' not in stored.cluster.log
    stored.s3.put_object(Bucket="docs", Key="other", Body=b"other")
    redirect = {"x-zonal-redirect": "1"}
    until(lambda: stored.signer.send("GET", "/docs/other", headers=redirect).status == 307)


def test_a_popular_object_is_right_whatever_happens_to_its_files(
    cluster: Cluster, keys: Keys, bucket: str
) -> None:
    small = Stored(cluster, keys, size=5000)
    for _ in range(3):
        assert small.signer.send("GET", "/docs/key").body == small.body
    for file in small.files():
        flip(file)
    for _ in range(150):
        # Some of them are spot checks.
        assert small.signer.send("GET", "/docs/key").body == small.body
        assert small.read(2490, 2510) == small.body[2490:2510]
