"""Three brains over one store on Ceph, behind the balancer of docs/scaling.md."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from tests.edgecache.balancer import balanced, is_ready
from tests.edgecache.brain.cdn.conftest import CdnBucket, Origin, cdn_bucket_for
from tests.edgecache.brain.cdn.test_cache_tags import purge
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.ceph.rados import Rados
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import running_rados, store_on
from tests.edgecache.memory import memory_folder
from tests.edgecache.several_brains import several_brains
from tests.edgecache.writers import tenant
from tests.scale.fresh_reads import Watched
from tests.sqlgateway.proxy import Proxy, proxy_before
from tests.waiting import wait_until

START_S = 120.0
SIGNED, PUBLIC = "signed S3 reads", "public reads from an HTTP origin"
# Of the bodies: in a row of the database, and in the store.
SMALL, LARGE = 100, 10_000
# How each public object is purged.
PURGES: dict[str, dict[str, object]] = {
    "key": {"keys": ["cdn-bucket/key"]},
    "prefix": {"prefix": "cdn-bucket/prefix"},
    "tag": {"tags": ["cdn-bucket/one"]},
}


@dataclass
class ThreeBrains:
    """The brains, and what is around them.

    front: the three as clients see them. line: from the last brain to its database.
    """

    rados: Rados
    brains: list[Cluster]
    front: Cluster
    origin: Origin
    line: Proxy

    @property
    def urls(self) -> list[str]:
        """Return where objects are read: at the balancer and at each brain."""
        return [self.front.url, *(brain.url for brain in self.brains)]

    def wait_until_ready(self) -> None:
        """Wait until each brain, and the balancer, takes requests."""
        for each in (*self.brains, self.front):
            wait_until(partial(is_ready, each), timeout_s=START_S)

    def objects(self) -> list[Watched]:
        """Return objects of new tenants: signed ones, and public ones of an HTTP origin."""
        keys, client = tenant(self.brains[0])
        client.close()
        bucket = cdn_bucket_for(self.brains[0], self.origin)
        made = [self._signed(keys, f"object-{digits}", digits) for digits in (SMALL, LARGE)]
        made += [self._public(bucket, name) for name in PURGES]
        for watched in made:
            watched.change(self.brains[0])
        return made

    def _signed(self, keys: Keys, key: str, digits: int) -> Watched:
        target = f"/docs/{key}"

        def write(body: bytes, through: Cluster) -> None:
            assert Signer(keys, through.url).send("PUT", target, body).status == 200

        headers = {url: Signer(keys, url).sign("GET", target) for url in self.urls}
        return Watched(SIGNED, target, headers, write, digits)

    def _public(self, bucket: CdnBucket, name: str) -> Watched:
        tagged = {"Cache-Tag": "one"} if name == "tag" else {}

        def write(body: bytes, through: Cluster) -> None:
            bucket.respond(f"/{name}", "max-age=600", body, **tagged)
            bucket.cluster = through
            purge(bucket, **PURGES[name])

        headers: dict[str, dict[str, str]] = {url: {} for url in self.urls}
        return Watched(PUBLIC, f"/p/{bucket.public_name}/{name}", headers, write, SMALL)


@contextmanager
def three_brains() -> Iterator[ThreeBrains]:
    """Yield the three, running."""
    with ExitStack() as stack:
        rados = stack.enter_context(running_rados())
        folder = stack.enter_context(memory_folder())
        begin = stack.enter_context(several_brains(folder, store_on(rados)))
        brains = [begin(workers=0) for _ in range(2)]
        direct = brains[0].database_url
        line = stack.enter_context(proxy_before(direct))
        through = urlsplit(line.url)._replace(path=urlsplit(direct).path).geturl()
        brains.append(begin(workers=0, variables={"DATABASE_URL": through}))
        origin = Origin()
        stack.callback(origin.server_close)
        stack.callback(origin.shutdown)
        front = stack.enter_context(balanced(brains, folder))
        yield ThreeBrains(rados, brains, front, origin, line)
