"""nginx before the object API: its configuration, and real traffic through it."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from edgecache.brain.delivery import nginx_offload
from tests.edgecache.s3.cluster import Cluster, Keys, until
from tests.edgecache.s3.conftest import ROOT, connect
from tests.edgecache.s3.raw import Signer, md5, send
from tests.edgecache.s3.test_clients import program
from tests.ports import free_port

SMALL = os.urandom(3000)
LARGE = os.urandom(6 * 2**20 + 3)
WAIT_S = 15.0


class Nginx:
    """A gateway that runs."""

    def __init__(self, folder: Path, cluster: Cluster, *stores: str, **variables: str) -> None:
        """stores: of workers on this machine, as ``gatewayconfig`` takes them."""
        self.folder, self.cluster, self.stores = folder, cluster, stores
        self.variables = variables
        self.port = free_port()
        self.site = folder / "zonal.conf"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Give its URL."""
        return f"http://127.0.0.1:{self.port}"

    def configure(self) -> None:
        """Make the files; ``nginx -t`` must like them."""
        done = subprocess.run(
            [
                *(sys.executable, "manage.py", "gatewayconfig", "--output", str(self.site)),
                *("--listen", f"127.0.0.1:{self.port}"),
                *(f"--store={store}" for store in self.stores),
            ],
            cwd=ROOT,
            capture_output=True,
            check=False,
            env=os.environ
            | {
                "DATABASE_URL": self.cluster.database_url,
                "ZSECRET_KEYS": self.cluster.secret_keys,
                "ZCACHE_BRAIN_SECRET": self.cluster.secret,
                "ZBRAIN_S3_PORT": str(self.cluster.port),
                **self.variables,
            },
        )
        assert done.returncode == 0, done.stderr
        folders = "".join(
            f"{name}_temp_path {self.folder}/{name};\n"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        # Else its processes, which root starts as somebody else, could not read the stores.
        user = "user root; " if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(
            f"{user}daemon off; pid {self.folder}/pid; error_log {self.folder}/error.log;\n"
            f"events {{ worker_connections 512; }}\n"
            f"http {{ log_format asked '$status $upstream_addr';\n"
            f"access_log {self.folder}/access.log asked;\n{folders}include {self.site}; }}\n"
        )
        tested = subprocess.run([*self.command, "-t"], capture_output=True, check=False)
        assert tested.returncode == 0, tested.stderr

    @property
    def log(self) -> str:
        """Give the requests up to now, each with the servers that nginx asked for it."""
        return (self.folder / "access.log").read_text()

    @property
    def command(self) -> list[str]:
        """Give the command line."""
        return [program("nginx"), "-p", str(self.folder), "-c", f"{self.folder}/nginx.conf"]

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        end = time.monotonic() + WAIT_S
        while True:
            try:
                send(self.url, "GET", "/")
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


@pytest.fixture(scope="module")
def nginx(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """Give a gateway before the shared brain."""
    running = Nginx(tmp_path_factory.mktemp("nginx"), cluster)
    running.folder.chmod(0o755)
    running.configure()
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def beside(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """Give a gateway on the machine of the brain and all workers."""
    stores = (f"{node['node_id']}={_store(cluster, node)}" for node in cluster.nodes)
    running = Nginx(tmp_path_factory.mktemp("nginx"), cluster, *stores, **cluster.variables)
    running.configure()
    assert f"server unix:{cluster.variables['ZBRAIN_S3_SOCKET']};" in running.site.read_text()
    running.start()
    yield running
    running.stop()


def _store(cluster: Cluster, node: dict[str, Any]) -> Path:
    """Find a worker's folder."""
    return cluster.folder / f"worker{cluster.nodes.index(node)}"


@pytest.fixture
def through(nginx: Nginx, keys: Keys, s3: Any, bucket: str) -> Iterator[Any]:
    """Give a boto3 client that goes through it, and objects that workers hold."""
    s3.put_object(
        Bucket=bucket,
        Key="small",
        Body=SMALL,
        ContentType="text/x-small",
        CacheControl="max-age=7",
        ContentDisposition="inline",
        ContentLanguage="de",
    )
    s3.put_object(Bucket=bucket, Key="large", Body=LARGE)
    s3.put_object(Bucket=bucket, Key="noted", Body=SMALL + b"n", Metadata={"note": "yes"})
    client = connect(keys, nginx.url)
    yield client
    client.close()


def test_the_file_is_for_its_owner_alone(nginx: Nginx) -> None:
    assert nginx.site.stat().st_mode & 0o777 == 0o600
    text = nginx.site.read_text()
    assert nginx_offload.token_of(nginx.cluster.secret) in text
    assert nginx.cluster.secret not in text
    for node in nginx.cluster.nodes:
        assert node["endpoint"].removeprefix("http://") in text


def test_objects_go_through_it_whole_and_in_ranges(through: Any, nginx: Nginx) -> None:
    for _ in range(3):
        got = through.get_object(Bucket="docs", Key="small", ChecksumMode="ENABLED")
        assert got["Body"].read() == SMALL
        assert (got["ContentType"], got["CacheControl"], got["ContentDisposition"]) == (
            "text/x-small",
            "max-age=7",
            "inline",
        )
        assert got["ContentLanguage"] == "de"
        assert got["ETag"] == f'"{md5(SMALL).hex()}"'
        assert got["ChecksumCRC32"]
        assert "x-zonal-node" not in got["ResponseMetadata"]["HTTPHeaders"]
        assert got["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"]
        large = through.get_object(Bucket="docs", Key="large")
        assert large["Body"].read() == LARGE
        part = through.get_object(Bucket="docs", Key="large", Range="bytes=1000000-5000000")
        assert part["Body"].read() == LARGE[1000000:5000001]
        assert part["ContentRange"] == f"bytes 1000000-5000000/{len(LARGE)}"
        one = through.get_object(Bucket="docs", Key="large", PartNumber=1)
        assert one["Body"].read() == LARGE
        noted = through.get_object(Bucket="docs", Key="noted")
        assert (noted["Body"].read(), noted["Metadata"]) == (SMALL + b"n", {"note": "yes"})


def test_nginx_itself_fetches_from_the_worker(through: Any, nginx: Nginx, keys: Keys) -> None:
    signer = Signer(keys, f"http://127.0.0.1:{nginx.cluster.port}")
    token = {
        "x-zonal-gateway": nginx_offload.token_of(nginx.cluster.secret),
        "x-zonal-client": "203.0.113.9",
    }
    until(lambda: "x-accel-redirect" in signer.send("GET", "/docs/small", headers=token).headers)
    locations: set[str] = set()
    while not locations:
        answer = signer.send("GET", "/docs/small", headers=token)
        # A sample is moved by the brain itself.
        assert answer.body in {b"", SMALL}
        locations |= {answer.headers.get("x-accel-redirect", "")} - {""}
    location = locations.pop()
    assert location.startswith("/.zonal-worker/zonal_")
    workers = {node["endpoint"].removeprefix("http://") for node in nginx.cluster.nodes}

    def is_asked() -> bool:
        assert through.get_object(Bucket="docs", Key="small")["Body"].read() == SMALL
        return any(worker in nginx.log for worker in workers)

    until(is_asked)
    # Nobody else gets there, with a ticket or without.
    refused = send(nginx.url, "GET", location)
    assert refused.status in {400, 403, 404}
    assert SMALL not in refused.body
    until(lambda: '"client":"203.0.113.9"' in nginx.cluster.log)


@pytest.mark.parametrize("token", ["", "wrong", "\u00fc"])
def test_whoever_only_says_to_be_nginx_is_served_as_anybody(
    through: Any, nginx: Nginx, keys: Keys, token: str
) -> None:
    signer = Signer(keys, nginx.cluster.url)
    headers = signer.sign("GET", "/docs/small")
    headers |= {"x-zonal-gateway": token, "x-zonal-client": "203.0.113.77"}
    answer = send(nginx.cluster.url, "GET", "/docs/small", headers)
    assert answer.body == SMALL
    assert "x-accel-redirect" not in answer.headers
    assert "203.0.113.77" not in nginx.cluster.log
    # Through nginx the client's own words do not arrive.
    headers = Signer(keys, nginx.url).sign("GET", "/docs/small")
    headers |= {"x-zonal-client": "203.0.113.77", "x-zonal-mover": "built-in"}
    assert send(nginx.url, "GET", "/docs/small", headers).body == SMALL
    assert "203.0.113.77" not in nginx.cluster.log


def test_writes_listings_and_errors_go_through_it(through: Any, nginx: Nginx, keys: Keys) -> None:
    through.put_object(Bucket="docs", Key="a//b/../ü +%", Body=LARGE)
    assert through.get_object(Bucket="docs", Key="a//b/../ü +%")["Body"].read() == LARGE
    keys_found = [row["Key"] for row in through.list_objects_v2(Bucket="docs")["Contents"]]
    assert keys_found == ["a//b/../ü +%", "large", "noted", "small"]
    signer = Signer(keys, nginx.url)
    assert signer.send("GET", "/docs/absent").code == "NoSuchKey"
    headers = {"range": "bytes=9999999999-"}
    assert signer.send("GET", "/docs/large", headers=headers).code == "InvalidRange"
    assert send(nginx.url, "GET", "/docs/small").code == "AccessDenied"
    assert send(nginx.url, "GET", signer.presign("GET", "/docs/small")).body == SMALL
    etag = {"if-none-match": f'"{md5(SMALL).hex()}"'}
    assert signer.send("GET", "/docs/small", headers=etag).status == 304
    assert signer.send("HEAD", "/docs/large").headers["content-length"] == str(len(LARGE))
    assert signer.send("PUT", "/docs/k", b"x", {"content-md5": "x"}).code == "InvalidDigest"


def test_a_worker_that_nginx_cannot_reach_is_the_brain_s_business(
    through: Any, nginx: Nginx
) -> None:
    text = nginx.site.read_text()
    broken = text
    for node in nginx.cluster.nodes:
        server = node["endpoint"].removeprefix("http://")
        broken = broken.replace(f"server {server}", f"server 127.0.0.1:{free_port()}")
    assert broken != text
    nginx.site.write_text(broken)
    nginx.stop()
    nginx.start()
    try:
        for _ in range(3):
            assert through.get_object(Bucket="docs", Key="large")["Body"].read() == LARGE
            part = through.get_object(Bucket="docs", Key="small", Range="bytes=5-9")
            assert part["Body"].read() == SMALL[5:10]
    finally:
        nginx.site.write_text(text)
        nginx.stop()
        nginx.start()


def test_nginx_sends_the_files_of_a_worker_beside_it(
    through: Any, beside: Nginx, keys: Keys
) -> None:
    direct, signer = Signer(keys, beside.cluster.url), Signer(keys, beside.url)
    _way(beside, keys)
    for key, body in (("small", SMALL), ("large", LARGE)):
        said, own = signer.send("GET", f"/docs/{key}"), direct.send("GET", f"/docs/{key}")
        assert said.body == body
        assert _of_object(said.headers) == _of_object(own.headers)
    asked = beside.log.splitlines()
    for _ in range(10):
        assert signer.send("GET", "/docs/large").body == LARGE
    until(lambda: len(beside.log.splitlines()) == len(asked) + 10)
    # Nobody but the brain was asked.
    brain = f"unix:{beside.variables['ZBRAIN_S3_SOCKET']}"
    assert {line.split()[1] for line in beside.log.splitlines()[len(asked) :]} == {brain}
    # What nginx would judge by itself goes the other way: the brain judges.
    part = signer.send("GET", "/docs/large", headers={"range": "bytes=5-9"})
    assert (part.status, part.body) == (206, LARGE[5:10])
    etag = f'"{md5(SMALL).hex()}"'
    assert signer.send("GET", "/docs/small", headers={"if-match": etag}).body == SMALL
    assert signer.send("GET", "/docs/small", headers={"if-none-match": etag}).status == 304
    assert signer.send("GET", "/docs/small", headers={"if-match": '"x"'}).status == 412


def test_nobody_else_reaches_the_files_and_a_lost_one_is_the_brain_s_business(
    through: Any, beside: Nginx, keys: Keys
) -> None:
    way = _way(beside, keys)
    refused = send(beside.url, "GET", way)
    assert refused.status in {400, 403, 404}
    assert SMALL not in refused.body
    # A client's own list of stores is believed by nobody.
    names = {"x-zonal-stores": way.split("/")[2]}
    said = Signer(keys, beside.cluster.url).send("GET", "/docs/small", headers=names)
    assert said.body == SMALL

    for node in beside.cluster.nodes:
        for file in _store(beside.cluster, node).rglob(hashlib.sha256(SMALL).hexdigest()):
            file.unlink()
    signer = Signer(keys, beside.url)
    for _ in range(3):
        assert signer.send("GET", "/docs/small").body == SMALL


def _way(nginx: Nginx, keys: Keys) -> str:
    """Give where the brain sends nginx for an object, once a worker holds it."""
    names = (nginx_offload.upstream_name(UUID(node["node_id"])) for node in nginx.cluster.nodes)
    said = {
        "x-zonal-gateway": nginx_offload.token_of(nginx.cluster.secret),
        "x-zonal-stores": " ".join(names),
    }
    found = ""

    def is_told() -> bool:
        # A sample is moved by the brain itself.
        nonlocal found
        answer = Signer(keys, nginx.cluster.url).send("GET", "/docs/small", headers=said)
        found = answer.headers.get("x-accel-redirect", "")
        return found.startswith("/.zonal-store/")

    until(is_told)
    return found


def _of_object(headers: Mapping[str, str]) -> dict[str, str]:
    """Give the headers that do not differ from answer to answer, or from server to server."""
    others = {"date", "server", "connection", "x-amz-request-id", "keep-alive", "x-zonal-node"}
    return {name: value for name, value in headers.items() if name not in others}


@pytest.mark.parametrize("store", ["nobody=/srv/a", f"{UUID(int=1)}=srv", f'{UUID(int=1)}=/a"b'])
def test_a_store_that_cannot_be_is_refused(store: str) -> None:
    with pytest.raises(CommandError, match="--store"):
        call_command("gatewayconfig", f"--store={store}")
