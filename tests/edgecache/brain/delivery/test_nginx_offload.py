"""nginx in front of the object API: its configuration, and real traffic through it."""

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
from tests.edgecache.alterations import flip
from tests.edgecache.brain.cdn.conftest import Origin, OriginAnswer, create_bucket
from tests.edgecache.brain.s3.programs import program
from tests.edgecache.brain.s3.raw import Signer, md5, send
from tests.edgecache.cluster import Cluster, Keys, until
from tests.edgecache.conftest import ROOT, connect
from tests.ports import free_port

pytestmark = pytest.mark.slow

SMALL = os.urandom(3000)
LARGE = os.urandom(6 * 2**20 + 3)
WAIT_S = 15.0


class Nginx:
    """A running nginx on the machine of the brain and its workers."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.cluster = folder, cluster
        self.port = free_port()
        self.site = folder / "zonal.conf"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return its URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """Return the requests up to now, each with the servers that nginx asked for it."""
        return (self.folder / "access.log").read_text()

    @property
    def command(self) -> list[str]:
        """Return the command line."""
        return [program("nginx"), "-p", str(self.folder), "-c", f"{self.folder}/nginx.conf"]

    def configure(self) -> None:
        """Write the files; ``nginx -t`` must accept them."""
        stores = [f"--store={each['node_id']}={self.store(each)}" for each in self.cluster.nodes]
        done = subprocess.run(
            [
                sys.executable,
                "manage.py",
                "gatewayconfig",
                "--output",
                str(self.site),
                "--listen",
                f"127.0.0.1:{self.port}",
                *stores,
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
                **self.cluster.variables,
            },
        )
        assert done.returncode == 0, done.stderr
        folders = "".join(
            f"{name}_temp_path {self.folder}/{name};\n"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        # Else its processes, which root starts as another user, could not read the stores.
        user = "user root; " if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(
            f"{user}daemon off; pid {self.folder}/pid; error_log {self.folder}/error.log;\n"
            f"events {{ worker_connections 512; }}\n"
            f"http {{ log_format asked '$status $upstream_addr';\n"
            f"access_log {self.folder}/access.log asked;\n{folders}include {self.site}; }}\n"
        )
        tested = subprocess.run([*self.command, "-t"], capture_output=True, check=False)
        assert tested.returncode == 0, tested.stderr

    def store(self, node: dict[str, Any]) -> Path:
        """Return a worker's folder."""
        return self.cluster.folder / f"worker{self.cluster.nodes.index(node)}"

    def headers(self) -> dict[str, str]:
        """Return the headers by which nginx authenticates itself and lists its stores."""
        stores = [
            nginx_offload.store_entry(UUID(node["node_id"]), self.store(node))
            for node in self.cluster.nodes
        ]
        return {
            "x-zonal-gateway": nginx_offload.token_of(self.cluster.secret),
            "x-zonal-client": "203.0.113.9",
            "x-zonal-stores": " ".join(stores),
        }

    def start(self) -> None:
        """Start it and wait until it responds."""
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
    """Run nginx in front of the shared brain."""
    running = Nginx(tmp_path_factory.mktemp("nginx"), cluster)
    running.folder.chmod(0o755)
    running.configure()
    running.start()
    yield running
    running.stop()


@pytest.fixture
def through(nginx: Nginx, keys: Keys, s3: Any, bucket: str) -> Iterator[Any]:
    """Return a boto3 client that goes through nginx, with objects in the bucket."""
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


def test_the_configuration_is_readable_by_its_owner_alone(nginx: Nginx) -> None:
    assert nginx.site.stat().st_mode & 0o777 == 0o600
    text = nginx.site.read_text()
    assert nginx_offload.token_of(nginx.cluster.secret) in text
    assert nginx.cluster.secret not in text
    assert f"server unix:{nginx.cluster.variables['ZBRAIN_S3_SOCKET']};" in text


def test_a_location_is_handed_on_as_the_brain_sends_it(nginx: Nginx) -> None:
    origin = Origin()
    try:
        _, bucket = create_bucket(nginx.cluster, origin.url)
        # nginx takes this for its own name of the brain, unless it is configured not to.
        location = "http://zonal_brain//evil.example/"
        origin.said["/page"] = OriginAnswer(301, {"Location": location}, b"")
        answer = send(nginx.url, "GET", f"/p/{bucket['public_name']}/page")
    finally:
        origin.shutdown()
        origin.server_close()
    assert answer.headers["location"] == location


def test_a_signed_header_with_an_underscore_arrives(through: Any) -> None:
    """Nginx would drop it, and the signature would be wrong."""
    through.put_object(Bucket="docs", Key="noted", Body=SMALL, Metadata={"my_note": "yes"})
    assert through.head_object(Bucket="docs", Key="noted")["Metadata"] == {"my_note": "yes"}


def test_objects_and_ranges_arrive_whole(through: Any, nginx: Nginx) -> None:
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


@pytest.mark.parametrize("token", ["", "wrong", "\u00fc"])
def test_a_client_that_pretends_to_be_nginx_is_served_as_any_other(
    through: Any, nginx: Nginx, keys: Keys, token: str
) -> None:
    signer = Signer(keys, nginx.cluster.url)
    headers = signer.sign("GET", "/docs/small") | nginx.headers()
    headers |= {"x-zonal-gateway": token, "x-zonal-client": "203.0.113.77"}
    answer = send(nginx.cluster.url, "GET", "/docs/small", headers)
    assert answer.body == SMALL
    assert "x-accel-redirect" not in answer.headers
    assert "203.0.113.77" not in nginx.cluster.log
    # nginx replaces what a client sends of these headers.
    headers = Signer(keys, nginx.url).sign("GET", "/docs/small")
    headers |= {"x-zonal-client": "203.0.113.77", "x-zonal-stores": "none"}
    assert send(nginx.url, "GET", "/docs/small", headers).body == SMALL
    assert "203.0.113.77" not in nginx.cluster.log


def test_the_client_s_address_is_logged_as_nginx_reports_it(
    through: Any, nginx: Nginx, keys: Keys
) -> None:
    signer = Signer(keys, nginx.cluster.url)
    assert signer.send("GET", "/docs/small", headers=nginx.headers()).status == 200
    until(lambda: '"client":"203.0.113.9"' in nginx.cluster.log)


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


def test_nginx_sends_the_files_of_a_worker_on_its_machine(
    through: Any, nginx: Nginx, keys: Keys
) -> None:
    direct, signer = Signer(keys, nginx.cluster.url), Signer(keys, nginx.url)
    _redirect(nginx, keys)
    for key, body in (("small", SMALL), ("large", LARGE)):
        said, own = signer.send("GET", f"/docs/{key}"), direct.send("GET", f"/docs/{key}")
        assert said.body == body
        assert _of_object(said.headers) == _of_object(own.headers)
    asked = nginx.log.splitlines()
    for _ in range(10):
        assert signer.send("GET", "/docs/large").body == LARGE
    until(lambda: len(nginx.log.splitlines()) == len(asked) + 10)
    # nginx asked the brain only.
    brain = f"unix:{nginx.cluster.variables['ZBRAIN_S3_SOCKET']}"
    assert {line.split()[1] for line in nginx.log.splitlines()[len(asked) :]} == {brain}
    # nginx would apply these to the file by itself; the brain does instead.
    part = signer.send("GET", "/docs/large", headers={"range": "bytes=5-9"})
    assert (part.status, part.body) == (206, LARGE[5:10])
    etag = f'"{md5(SMALL).hex()}"'
    assert signer.send("GET", "/docs/small", headers={"if-match": etag}).body == SMALL
    assert signer.send("GET", "/docs/small", headers={"if-none-match": etag}).status == 304
    assert signer.send("GET", "/docs/small", headers={"if-match": '"x"'}).status == 412


def test_a_file_is_out_of_a_client_s_reach_and_a_lost_one_is_sent_by_the_brain(
    through: Any, nginx: Nginx, keys: Keys
) -> None:
    path = _redirect(nginx, keys)
    refused = send(nginx.url, "GET", path)
    assert refused.status in {400, 403, 404}
    assert SMALL not in refused.body
    # A client's own list of stores is ignored.
    names = {"x-zonal-stores": path.split("/")[2]}
    said = Signer(keys, nginx.cluster.url).send("GET", "/docs/small", headers=names)
    assert said.body == SMALL

    for node in nginx.cluster.nodes:
        for file in nginx.store(node).rglob(hashlib.sha256(SMALL).hexdigest()):
            file.unlink()
    signer = Signer(keys, nginx.url)
    for _ in range(3):
        assert signer.send("GET", "/docs/small").body == SMALL


def test_nginx_sends_no_altered_file(through: Any, nginx: Nginx, keys: Keys) -> None:
    body = os.urandom(3000)
    through.put_object(Bucket="docs", Key="altered", Body=body)
    _redirect(nginx, keys, "altered")
    name = hashlib.sha256(body).hexdigest()
    files = [nginx.store(node) / "objects" / name[:2] / name for node in nginx.cluster.nodes]
    for file in files:
        if file.exists():
            flip(file)
    signer = Signer(keys, nginx.url)
    for _ in range(10):
        assert signer.send("GET", "/docs/altered").body == body
    # Once they are right again, it sends them again.
    for file in files:
        if file.exists() and file.read_bytes() != body:
            flip(file)
    _redirect(nginx, keys, "altered")


def _redirect(nginx: Nginx, keys: Keys, key: str = "small") -> str:
    """Return the path to which the brain sends nginx for an object, once a worker holds it."""
    path = ""

    def is_redirected() -> bool:
        # A spot check is sent by the brain itself.
        nonlocal path
        signer = Signer(keys, nginx.cluster.url)
        answer = signer.send("GET", f"/docs/{key}", headers=nginx.headers())
        path = answer.headers.get("x-accel-redirect", "")
        return path.startswith("/.zonal-store/")

    until(is_redirected)
    return path


def _of_object(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that are the same in each response and from each server."""
    others = {"date", "server", "connection", "x-amz-request-id", "keep-alive", "x-zonal-node"}
    return {name: value for name, value in headers.items() if name not in others}


@pytest.mark.parametrize("store", ["nobody=/srv/a", f"{UUID(int=1)}=srv", f'{UUID(int=1)}=/a"b'])
def test_an_invalid_store_is_refused(store: str) -> None:
    with pytest.raises(CommandError, match="--store"):
        call_command("gatewayconfig", f"--store={store}")
