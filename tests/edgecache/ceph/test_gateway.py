"""Brains on Ceph's RADOS gateway: stateless, and nothing acknowledged is lost by a kill."""

import hashlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.edgecache.brain.support import ClusterRows
from tests.edgecache.ceph.rados import Rados
from tests.edgecache.cluster import Cluster, until
from tests.edgecache.conftest import ROOT, connect
from tests.edgecache.several_brains import Brains
from tests.edgecache.writers import SIZES, Writers, check, tenant

MIB = 2**20


def test_three_brains_read_what_any_of_them_wrote(brains: Brains) -> None:
    clusters = [brains(workers=0) for _ in range(3)]
    keys, first = tenant(clusters[0])
    clients = [first, *(connect(keys, cluster.url) for cluster in clusters[1:])]
    data = secrets.token_bytes(20 * MIB)
    for number, client in enumerate(clients):
        client.put_object(Bucket="docs", Key=f"small{number}", Body=b"%d" % number)
        client.put_object(Bucket="docs", Key=f"large{number}", Body=data)
    upload = clients[0].create_multipart_upload(Bucket="docs", Key="parts")["UploadId"]
    named = {"Bucket": "docs", "Key": "parts", "UploadId": upload}
    parts = []
    for number, client in enumerate(clients, 1):
        part = client.upload_part(**named, PartNumber=number, Body=data[: 6 * MIB])
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    clients[2].complete_multipart_upload(**named, MultipartUpload={"Parts": parts})

    for client in clients:
        for number in range(3):
            small = client.get_object(Bucket="docs", Key=f"small{number}")
            assert small["Body"].read() == b"%d" % number
            span = client.get_object(Bucket="docs", Key=f"large{number}", Range="bytes=9000000-")
            assert span["Body"].read() == data[9_000_000:]
        assert client.get_object(Bucket="docs", Key="parts")["Body"].read() == data[: 6 * MIB] * 3
    for cluster in clusters:
        assert not list((cluster.folder / "brain" / "objects").iterdir())


def test_no_acknowledged_put_is_lost_when_the_gateway_is_killed(
    brains: Brains, rados: Rados
) -> None:
    one, other = brains(workers=0), brains(workers=0)
    keys, _ = tenant(one)
    with Writers(keys, one.url) as writers:
        for _ in range(3):
            writers.wait_for(30)
            rados.kill_gateway()
            time.sleep(0.5)
            rados.start_gateway()
        writers.wait_for(10)

    assert writers.refused <= {500, 503}
    check(writers, connect(keys, other.url))
    check(writers, connect(keys, one.url))


def test_no_acknowledged_put_is_lost_when_a_brain_is_killed(brains: Brains) -> None:
    one, other = brains(workers=0), brains(workers=0)
    keys, client = tenant(other)
    upload = client.create_multipart_upload(Bucket="docs", Key="parts")["UploadId"]
    named = {"Bucket": "docs", "Key": "parts", "UploadId": upload}
    data = secrets.token_bytes(6 * MIB)
    acknowledged: dict[int, str] = {}

    def upload_part(number: int) -> None:
        doomed = connect(keys, one.url)
        try:
            part = doomed.upload_part(**named, PartNumber=number, Body=data)
        except (ClientError, BotoCoreError):
            return
        acknowledged[number] = part["ETag"]

    with Writers(keys, one.url) as writers, ThreadPoolExecutor(4) as pool:
        running = [pool.submit(upload_part, number) for number in range(1, 40)]
        writers.wait_for(30)
        one.brain.kill()
        one.brain.wait()
        for each in running:
            each.result()

    check(writers, client)
    assert 0 < len(acknowledged) < 39
    listed = [
        {"PartNumber": number, "ETag": acknowledged[number]} for number in sorted(acknowledged)
    ]
    client.complete_multipart_upload(**named, MultipartUpload={"Parts": listed})
    whole = client.get_object(Bucket="docs", Key="parts")["Body"].read()
    assert whole == data * len(acknowledged)


def test_an_upload_in_parts_survives_kills_of_the_gateway(brains: Brains, rados: Rados) -> None:
    one, other = brains(workers=0), brains(workers=0)
    keys, client = tenant(one)
    named = {"Bucket": "docs", "Key": "parts"}
    upload = named | {"UploadId": client.create_multipart_upload(**named)["UploadId"]}
    # Beyond what the brain itself sends to the store in one piece.
    bodies = [secrets.token_bytes(20 * MIB) for _ in range(4)]

    def put_part(number: int) -> dict[str, Any]:
        part = client.upload_part(**upload, PartNumber=number, Body=bodies[number - 1])
        return {"PartNumber": number, "ETag": part["ETag"]}

    def despite_kill(work: Callable[[], Any], delay_s: float) -> Any:
        """Kill the gateway in the middle of a request, which is then repeated."""
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(work)
            time.sleep(delay_s)
            rados.kill_gateway()
            time.sleep(1)
            rados.start_gateway()
            try:
                return asked.result()
            except ClientError as exc:
                if exc.response["ResponseMetadata"]["HTTPStatusCode"] != 503:
                    raise
                return work()

    parts = [
        despite_kill(partial(put_part, number), 0.1 * number) for number in range(1, len(bodies))
    ]
    parts.append(put_part(len(bodies)))
    listed = {"Parts": parts}
    despite_kill(lambda: client.complete_multipart_upload(**upload, MultipartUpload=listed), 0.3)

    wanted = hashlib.sha256(b"".join(bodies)).digest()
    for each in (client, connect(keys, other.url)):
        assert hashlib.sha256(each.get_object(**named)["Body"].read()).digest() == wanted
    assert client.list_multipart_uploads(Bucket="docs").get("Uploads", []) == []


def test_workers_copies_are_read_while_the_gateway_is_away(brains: Brains, rados: Rados) -> None:
    cluster = brains(workers=1)
    _, client = tenant(cluster)
    body = secrets.token_bytes(SIZES[1])
    client.put_object(Bucket="docs", Key="k", Body=body)
    rows = ClusterRows(cluster.database_url)
    until(lambda: rows.value("SELECT count(*) FROM brain_location") == 1)
    for path in (cluster.folder / "brain" / "blobs").glob("*/*"):
        path.unlink()
    rados.kill_gateway()
    try:
        assert client.get_object(Bucket="docs", Key="k")["Body"].read() == body
        with pytest.raises(ClientError) as caught:
            client.put_object(Bucket="docs", Key="k2", Body=body)
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
        assert "store" in caught.value.response["Error"]["Message"]
    finally:
        rados.start_gateway()
    client.put_object(Bucket="docs", Key="k2", Body=body)


def test_everything_moves_to_the_gateway_while_it_is_written(
    brains: Brains, new_store: Callable[[], dict[str, str]]
) -> None:
    given = new_store()
    following = {name.replace("STORE_", "STORE_NEXT_"): value for name, value in given.items()}
    cluster = brains(workers=0, variables=dict.fromkeys(given, "") | following)
    keys, client = tenant(cluster)
    with Writers(keys, cluster.url) as writers:
        writers.wait_for(30)
        dry = movestore(cluster, following, "--dry-run")
        assert dry["before"]["objects"] >= 30
        moved = movestore(cluster, following)
        writers.wait_for(30)

    assert (moved["left"]["objects"], moved["failed"], moved["stopped"]) == (0, 0, "")
    assert moved["moved"] >= 30
    folder = cluster.folder / "brain"
    files = [path for path in folder.glob("[ob]*/**/*") if path.is_file()]
    assert files
    for path in files:
        path.unlink()
    check(writers, client)


def movestore(cluster: Cluster, following: dict[str, str], *options: str) -> Any:
    """Run the command as an operator does; return its facts."""
    done = subprocess.run(
        [sys.executable, "manage.py", "movestore", "--json", *options],
        cwd=ROOT,
        env=os.environ
        | following
        | {
            "DATABASE_URL": cluster.database_url,
            "ZDATA_DIR": str(cluster.folder),
            "ZSECRET_KEYS": cluster.secret_keys,
        },
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)
