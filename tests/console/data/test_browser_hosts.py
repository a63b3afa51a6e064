"""In a browser: host names of buckets, verified by records in a real name server."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from tests.console.browser import Visitor
from tests.console.journeys import post, sign_up
from tests.console.layout import SIZES, hold
from tests.edgecache.cluster import Cluster
from tests.oauth.domains.nameserver import NameServer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("over_a_brain"),
]


@pytest.fixture
def names(settings: Settings) -> Iterator[NameServer]:
    """Return the name server that the platform asks."""
    with NameServer() as server:
        settings.SERVER = replace(settings.SERVER, dns_resolvers=(server.address,))
        yield server


def open_settings(visitor: Visitor) -> None:
    """Create a bucket, and open its settings."""
    sign_up(visitor)
    assert post(visitor, "/v1/cache/buckets", {"name": "media"}).ok
    visitor.go("/console/objects?bucket=media&view=settings")


def publish(visitor: Visitor, names: NameServer, host: str) -> None:
    """Add the TXT record that the page shows."""
    record = visitor.page.locator("#host-record dl").first
    name = record.locator('[data-slot="name"]').text_content() or ""
    assert name == f"_zonal-cache.{host}"
    names.records[name] = [record.locator('[data-slot="value"]').text_content() or ""]


def lose_record(names: NameServer, cluster: Cluster, host: str) -> list[str]:
    """Remove a host's record, as a check of the brain's finds; return its texts."""
    with psycopg.connect(cluster.database_url, autocommit=True) as database:
        database.execute("UPDATE brain_host SET gone_since = now() WHERE host = %s", [host])
    return names.records.pop(f"_zonal-cache.{host}")


@pytest.mark.parametrize("size", SIZES)
def test_a_host_is_verified_and_its_lost_record_restored(
    visit: Callable[..., Visitor],
    names: NameServer,
    cluster: Cluster,
    settings: Settings,
    picture: Callable[[Page, str], None],
    size: str,
) -> None:
    settings.CACHE = replace(settings.CACHE, s3_url="https://objects.example.net")
    visitor, host = visit(**SIZES[size]), f"{size}.example.com"
    open_settings(visitor)
    visitor.fill("Add a host name", host)
    visitor.press("Check")
    visitor.sees(f"_zonal-cache.{host}")
    visitor.sees("objects.example.net")
    # The record to create is still shown after a reload, and on another day.
    visitor.page.reload()
    visitor.settle()
    visitor.sees(f"_zonal-cache.{host}")
    hold(visitor, "the records of a host")
    picture(visitor.page, f"objects-hosts-{size}")
    publish(visitor, names, host)
    visitor.press("Check")
    row = visitor.page.locator("#host-list > li")
    expect(row).to_contain_text("its TXT record is there")
    row.get_by_text("DNS records").click()
    expect(row.get_by_text("objects.example.net")).to_be_visible()

    restored = lose_record(names, cluster, host)
    visitor.page.reload()
    visitor.settle()
    expect(row).to_contain_text("After three days the host is removed")
    expect(row.get_by_text(restored[0])).to_be_visible()
    hold(visitor, "a host whose record is gone")
    picture(visitor.page, f"objects-hosts-gone-{size}")
    visitor.press(f"Check {host}")
    visitor.sees("The record was not found.")
    names.records[f"_zonal-cache.{host}"] = restored
    visitor.press(f"Check {host}")
    expect(row).to_contain_text("its TXT record is there")


@pytest.mark.usefixtures("names")
def test_a_record_is_copied(visitor: Visitor) -> None:
    open_settings(visitor)
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.fill("Add a host name", "files.example.com")
    visitor.press("Check")
    visitor.press("Copy the value of the TXT record of _zonal-cache.files.example.com")
    visitor.sees_status("The value is in the clipboard.")
    copied = visitor.page.evaluate("navigator.clipboard.readText()")
    assert copied == visitor.page.locator('#host-record [data-slot="value"]').text_content()
    # The object API of this installation has an address and no name.
    visitor.sees("it has no name for a CNAME")
