"""What is kept by another way, and what was kept and is lost, is still what its origin says."""

import hashlib

import pytest

from edgecache.protocol.hot import OBJECT_LIMIT_BYTES
from tests.edgecache.cdn.conftest import Pulled
from tests.edgecache.cdn.test_pulling import until
from tests.edgecache.s3.cluster import Keys
from tests.edgecache.s3.raw import Signer


def lose(pulled: Pulled, body: bytes) -> None:
    """Take bytes away from every worker and from the brain."""
    name = hashlib.sha256(body).hexdigest()
    folder = pulled.cluster.folder
    # A copy that is still being made would bring them back.
    until(lambda: len(list(folder.glob(f"worker*/**/{name}"))) == len(pulled.cluster.nodes))
    for path in folder.rglob(name):
        path.unlink()


def read_as_an_object(pulled: Pulled, key: str) -> bytes:
    """Read through S3, with a key of the bucket's owner."""
    organization, environment = (int(pair.partition("=")[2]) for pair in pulled.scope.split("&"))
    keys = pulled.cluster.tenant(like=Keys(organization, environment, "", ""))
    answer = Signer(keys, pulled.cluster.url).send("GET", f"/pulled/{key}")
    assert answer.status == 200
    return answer.body


@pytest.mark.parametrize("path", ["/a", "/a?v=1"])
def test_lost_bytes_are_a_miss(pulled: Pulled, path: str) -> None:
    # Too large for anybody's memory, where it would not be lost.
    old = f"lost of {path} {pulled.public_name}".encode().ljust(2 * OBJECT_LIMIT_BYTES)
    pulled.tell(path, "max-age=600", old)
    pulled.get(path)
    until(pulled.says("hit", path))
    lose(pulled, old)
    pulled.tell(path, "max-age=0", b"new", X_Own="1")
    answer = pulled.get(path)
    assert (answer.status, answer.body, answer.headers["x-own"]) == (200, b"new", "1")
    # And what was fetched then is good for no longer than the origin says.
    pulled.tell(path, "max-age=0", b"newer")
    assert pulled.get(path).body == b"newer"


@pytest.mark.parametrize("control", ["max-age=0", "no-store"])
def test_a_read_through_s3_keeps_nothing_longer_than_the_origin_says(
    pulled: Pulled, control: str
) -> None:
    pulled.tell("/a", control, b"old")
    assert read_as_an_object(pulled, "a") == b"old"
    pulled.tell("/a", control, b"new")
    # The fetch of the object may still be under way; its answer came before.
    for _ in range(3):
        assert pulled.get("/a").body == b"new"


@pytest.mark.parametrize("time", range(5))
def test_what_s3_has_read_is_no_answer_to_who_wants_another_kind(pulled: Pulled, time: int) -> None:
    pulled.tell("/a", "max-age=600", b"plain", Vary="Accept-Language")
    assert read_as_an_object(pulled, "a") == b"plain"
    # The fetch of the object may have come to its end, or not.
    pulled.tell("/a", "max-age=600", b"german", Vary="Accept-Language")
    for _ in range(3):
        assert pulled.get("/a", accept_language="de").body == b"german", time
