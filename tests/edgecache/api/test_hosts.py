"""Hosts of buckets, verified with a real name server and served by a real brain."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import dns.rcode
import psycopg
import pytest
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from edgecache.tasks import check_host_records
from tests.cast import Answer, Caller, signed_in
from tests.edgecache.brain.cdn.conftest import Origin, OriginAnswer
from tests.edgecache.brain.s3 import raw
from tests.edgecache.cluster import Cluster, until
from tests.oauth.domains.nameserver import NameServer
from tests.parallel import at_once

pytestmark = pytest.mark.usefixtures("over_a_brain")
NUMBERS = count()


@pytest.fixture
def names(settings: Settings) -> Iterator[NameServer]:
    """Return the name server that the platform queries."""
    with NameServer() as server:
        settings.SERVER = replace(settings.SERVER, dns_resolvers=(server.address,))
        yield server


@pytest.fixture
def host() -> str:
    """Return a host that no other test uses, because the tests share a brain."""
    return f"files{next(NUMBERS)}.example.com"


@dataclass
class Site:
    """A public bucket with its own origin, and its owner's client."""

    caller: Caller
    origin: Origin
    cluster: Cluster
    path: str = "/v1/cache/buckets/site/hosts"

    def claim(self, host: str) -> Answer:
        """Request the host, which looks for its DNS record."""
        return self.caller.post(self.path, {"host": host})

    def publish(self, names: NameServer, host: str) -> str:
        """Add the DNS record that the refusal names; return its value."""
        record = self.claim(host).body["record"]
        names.records.setdefault(record["name"], ["v=spf1 -all"]).append(record["value"])
        return str(record["value"])

    def hold(self, names: NameServer, host: str) -> "Site":
        """Publish a host's record and add the host."""
        self.publish(names, host)
        assert self.claim(host).status == 201
        return self

    def hosts(self) -> list[str]:
        """Return the bucket's hosts."""
        return [row["host"] for row in self.caller.get(self.path).body["results"]]


def ask(cluster: Cluster, host: str, path: str = "/a", method: str = "GET") -> raw.Answer:
    """Send a request for a host to the gateway."""
    return raw.send(cluster.url, method, path, {"host": host})


def site_of(user: User, cluster: Cluster, body: bytes, environment: str = "live") -> Site:
    """Create a site with this body at /a."""
    origin, caller = Origin(), signed_in(user, environment)
    origin.said["/a"] = OriginAnswer(200, {"Cache-Control": "max-age=600"}, body)
    config = {"url": origin.url}
    described = {"name": "web", "kind": "http", "config": config}
    assert caller.post("/v1/cache/origins", described).status == 201
    bucket = {"name": "site", "origin": "web", "is_public": True}
    assert caller.post("/v1/cache/buckets", bucket).status == 201
    return Site(caller, origin, cluster)


@pytest.fixture
def mine(alice: User, cluster: Cluster) -> Iterator[Site]:
    """Return Alice's site."""
    site = site_of(alice, cluster, b"of Alice")
    yield site
    close(site)


@pytest.fixture
def theirs(charlie: User, cluster: Cluster) -> Iterator[Site]:
    """Return Charlie's site."""
    site = site_of(charlie, cluster, b"of Charlie")
    yield site
    close(site)


def close(site: Site) -> None:
    site.origin.shutdown()
    site.origin.server_close()


def change(cluster: Cluster, statement: str, *values: object) -> None:
    """Change the brain's rows as if time had passed."""
    with psycopg.connect(cluster.database_url, autocommit=True) as database:
        database.execute(statement.encode(), values)


# --- what an attacker would try ---------------------------------------------------------------


INVALID: list[object] = [
    "",
    "localhost",
    "127.0.0.1",
    "[::1]",
    "files.example.com:80",
    "files.example.com..",
    "*.example.com",
    "a/b.example.com",
    "https://files.example.com",
    "user@files.example.com",
    "münchen.example",
    "files.example.com\0",
    "x" * 64 + ".com",
    "a." * 115 + "example.com",
    "api.of-the-platform.example",
    "s3.of-the-platform.example",
    "site.s3.of-the-platform.example",
    7,
]


def test_an_invalid_host_is_refused(names: NameServer, mine: Site, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "api.of-the-platform.example"]
    settings.CACHE = replace(settings.CACHE, s3_url="https://s3.of-the-platform.example")
    for host in INVALID:
        answer = mine.caller.post(mine.path, {"host": host})
        assert (answer.status, answer.code) == (400, "invalid_request"), host
        assert answer.body["errors"][0]["field"] == "host"
    assert not names.asked


def test_the_brain_s_own_s3_hosts_are_refused_despite_their_dns_records(
    names: NameServer, mine: Site
) -> None:
    mine.publish(names, "site.localhost")
    answer = mine.claim("site.localhost")
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "host")


def test_a_refusal_names_the_missing_record(names: NameServer, mine: Site, host: str) -> None:
    for texts in ([], ["something else"], ["zonal-cache-verification=" + "0" * 64]):
        names.records[f"_zonal-cache.{host}"] = texts
        answer = mine.claim(host)
        assert (answer.status, answer.code) == (409, "host_not_proved")
        record = answer.body["record"]
        assert (record["type"], record["name"]) == ("TXT", f"_zonal-cache.{host}")
        assert record["name"] in answer.body["detail"]
        assert record["value"] in answer.body["detail"]
    assert mine.hosts() == []
    assert ask(mine.cluster, host).code == "InvalidRequest"


def test_a_host_s_records_are_shown_before_and_after_its_proof(
    names: NameServer, mine: Site, settings: Settings, host: str
) -> None:
    settings.CACHE = replace(settings.CACHE, s3_url="https://objects.example.net:9000")
    unproved = mine.caller.get(f"{mine.path}/{host.upper()}.").body
    assert (unproved["host"], unproved["proved_at"], unproved["gone_since"]) == (host, None, None)
    assert unproved["cname"] == {"type": "CNAME", "name": host, "value": "objects.example.net"}
    assert (names.asked, mine.hosts()) == ([], [])
    names.records[unproved["record"]["name"]] = [unproved["record"]["value"]]
    proved = mine.claim(host).body
    assert proved["proved_at"] is not None
    assert proved["record"] == unproved["record"]
    assert mine.caller.get(f"{mine.path}/{host}").body == proved
    assert mine.caller.get(mine.path).body["results"] == [proved]


def test_there_is_no_cname_to_an_address(mine: Site, settings: Settings) -> None:
    for url in ("http://127.0.0.1:9000", "http://[::1]:9000", "http://localhost"):
        settings.CACHE = replace(settings.CACHE, s3_url=url)
        assert mine.caller.get(f"{mine.path}/files.example.com").body["cname"] is None


def test_an_invalid_host_has_no_records(mine: Site) -> None:
    answer = mine.caller.get(f"{mine.path}/localhost")
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "host")


def test_a_record_verifies_one_host_for_one_bucket_of_one_environment(
    names: NameServer, mine: Site, theirs: Site, alice: User, host: str
) -> None:
    mine.caller.post("/v1/cache/buckets", {"name": "other"})
    other = Site(mine.caller, mine.origin, mine.cluster, "/v1/cache/buckets/other/hosts")
    elsewhere = site_of(alice, mine.cluster, b"", "sandbox")
    value = mine.publish(names, host)
    names.records[f"_zonal-cache.x.{host}"] = [value]
    for site in (theirs, other, elsewhere):
        assert site.claim(host).code == "host_not_proved"
    assert mine.claim(f"x.{host}").code == "host_not_proved"
    close(elsewhere)


def test_a_host_moves_to_another_bucket_only_when_its_record_is_gone(
    names: NameServer, mine: Site, theirs: Site, charlie: User, host: str
) -> None:
    theirs.hold(names, host)
    mine.publish(names, host)
    answer = mine.claim(host)
    assert (answer.status, answer.code) == (409, "host_taken")
    assert "Charlie" not in str(answer.body)
    assert ask(mine.cluster, host).body == b"of Charlie"
    del names.records[f"_zonal-cache.{host}"][1]
    assert mine.claim(host).status == 201
    assert ask(mine.cluster, host).body == b"of Alice"
    assert (mine.hosts(), theirs.hosts()) == ([host], [])
    assert theirs.claim(host).code == "host_not_proved"
    event = AuditEvent.objects.get(tag="sync:bucket_host:lapse")
    assert event.organization_id == charlie.organization_id
    assert event.data == {"host": host, "bucket": "site"}


@pytest.mark.django_db(transaction=True)
def test_concurrent_verifications_give_a_host_to_one_bucket(
    names: NameServer, mine: Site, theirs: Site, host: str
) -> None:
    mine.publish(names, host)
    theirs.publish(names, host)
    answers = at_once(lambda: mine.claim(host), lambda: theirs.claim(host))
    assert sorted(answer.status for answer in answers) == [201, 409]
    assert len(mine.hosts() + theirs.hosts()) == 1


def test_another_tenant_can_neither_see_nor_remove_a_host(
    names: NameServer, mine: Site, theirs: Site, host: str
) -> None:
    theirs.hold(names, host)
    assert mine.hosts() == []
    for name in (host, "nonsense", "..", "%00.example.com"):
        assert mine.caller.call("DELETE", f"{mine.path}/{name}").status == 404
    assert mine.caller.call("DELETE", f"{mine.path}/{host}").code == "host_not_found"
    assert theirs.hosts() == [host]


def test_a_host_serves_only_its_public_bucket(
    names: NameServer, mine: Site, theirs: Site, host: str
) -> None:
    theirs.hold(names, host)
    private = {"name": "private", "is_public": False}
    public_name = mine.caller.post("/v1/cache/buckets", private).body["public_name"]
    own_name = mine.caller.get("/v1/cache/buckets/site").body["public_name"]
    theirs.origin.said[f"/p/{own_name}/a"] = OriginAnswer(200, {}, b"a key of Charlie's")
    # A host of Charlie's serves Charlie's bucket only, without the S3 API, signed or not.
    assert ask(mine.cluster, host, f"/p/{own_name}/a").body == b"a key of Charlie's"
    for path in (f"/p/{public_name}/a", "/private/a", "/?list-type=2", "/"):
        assert ask(mine.cluster, host, path).status == 404
    assert ask(mine.cluster, host, "/a", "PUT").status == 405
    theirs.caller.call("PATCH", "/v1/cache/buckets/site", {"is_public": False})
    assert ask(mine.cluster, host).status == 404


@pytest.mark.slow
def test_dns_lookups_are_limited(names: NameServer, mine: Site, host: str) -> None:
    for _ in range(60):
        assert mine.claim(host).code == "host_not_proved"
    answer = mine.claim(host)
    assert (answer.status, answer.code) == (429, "too_many_attempts")
    assert len(names.asked) == 60


@pytest.mark.slow
def test_the_number_of_hosts_per_bucket_is_limited(
    names: NameServer, mine: Site, host: str
) -> None:
    for number in range(20):
        mine.hold(names, f"{number}.{host}")
    mine.publish(names, host)
    answer = mine.claim(host)
    assert (answer.status, answer.code) == (409, "cache_limit_reached")
    # Existing hosts may be verified again.
    assert mine.claim(f"7.{host}").status == 201


# --- what its owner does ----------------------------------------------------------------------


def test_a_verified_host_serves_the_bucket(names: NameServer, mine: Site, host: str) -> None:
    mine.publish(names, host)
    proved = mine.claim(f" {host.upper()}. ")
    assert (proved.status, proved.body["host"], proved.body["gone_since"]) == (201, host, None)
    for asked in (host, f"{host}:9000", host.upper(), f"{host}.", f"{host.upper()}.:80"):
        answer = ask(mine.cluster, asked)
        assert (answer.status, answer.body) == (200, b"of Alice")
        assert "Zonal" in answer.headers["cache-status"]
    # Both names lead to the same object.
    until(lambda: "hit" in ask(mine.cluster, host).headers["cache-status"])
    public_name = mine.caller.get("/v1/cache/buckets/site").body["public_name"]
    answer = ask(mine.cluster, "gateway.example.net", f"/p/{public_name}/a")
    assert "hit" in answer.headers["cache-status"]
    # Verifying it again changes nothing.
    assert mine.claim(host).body == proved.body
    tags = set(AuditEvent.objects.values_list("tag", flat=True))
    assert "api:bucket_host:create" in tags


def test_a_removed_host_is_not_served_any_more(names: NameServer, mine: Site, host: str) -> None:
    mine.hold(names, host)
    assert ask(mine.cluster, host).body == b"of Alice"
    path = f"{mine.path}/{host.upper()}"
    assert mine.caller.call("DELETE", path).status == 204
    assert ask(mine.cluster, host).code == "InvalidRequest"
    assert mine.caller.call("DELETE", path).code == "host_not_found"
    assert mine.hosts() == []


def test_deleting_a_bucket_deletes_its_hosts(names: NameServer, mine: Site, host: str) -> None:
    mine.hold(names, host)
    assert ask(mine.cluster, host).status == 200
    assert mine.caller.call("DELETE", "/v1/cache/buckets/site").status == 204
    assert ask(mine.cluster, host).code == "InvalidRequest"
    mine.caller.post("/v1/cache/buckets", {"name": "site", "origin": "web", "is_public": True})
    assert mine.hosts() == []


def test_failing_name_servers_verify_nothing(names: NameServer, mine: Site, host: str) -> None:
    mine.publish(names, host)
    names.rcode = dns.rcode.SERVFAIL
    answer = mine.claim(host)
    assert (answer.status, answer.code) == (503, "dns_unavailable")


def test_a_record_missing_for_three_days_removes_the_host(
    names: NameServer, mine: Site, alice: User, host: str
) -> None:
    mine.hold(names, host)

    def look(*, days: float) -> dict[str, str | None]:
        back = "UPDATE brain_host SET checked_at = checked_at - interval '1 day',"
        back += " gone_since = gone_since - make_interval(secs => %s) WHERE host = %s"
        change(mine.cluster, back, days * 86400, host)
        check_host_records(0)
        return {
            row["host"]: row["gone_since"] for row in mine.caller.get(mine.path).body["results"]
        }

    assert look(days=0) == {host: None}
    record = names.records.pop(f"_zonal-cache.{host}")
    assert look(days=0)[host] is not None
    names.records[f"_zonal-cache.{host}"] = record
    assert look(days=2.9) == {host: None}
    del names.records[f"_zonal-cache.{host}"]
    look(days=0)
    # Failing name servers do not remove the host, however long they fail.
    names.rcode = dns.rcode.SERVFAIL
    assert host in look(days=2.9)
    names.rcode = dns.rcode.NOERROR
    assert host in look(days=0)
    assert ask(mine.cluster, host).body == b"of Alice"
    assert look(days=0.2) == {}
    assert ask(mine.cluster, host).code == "InvalidRequest"
    event = AuditEvent.objects.get(tag="sync:bucket_host:lapse")
    assert event.organization_id == alice.organization_id
    assert event.data == {"host": host, "bucket": "site"}


def test_records_are_checked_at_intervals(names: NameServer, mine: Site, host: str) -> None:
    mine.hold(names, host)
    asked = len(names.asked)
    check_host_records(0)
    assert len(names.asked) == asked
