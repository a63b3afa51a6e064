"""In a browser: the cache's charts, its buckets and keys, and purging."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from math import sin

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings

from accounts.models import User
from edgecache.api import client
from edgecache.api.metrics_history import FIELDS
from edgecache.models import CacheSample
from tests.edgecache.api.brain import METRICS, SECRET, ScriptedBrain
from tests.edgecache.api.test_endpoints import MINE, THEIRS, node
from tests.platform_site.console.browser import Visitor
from tests.platform_site.console.journeys import sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
PURGED = {"objects_purged": 3, "bytes_freed": 4_200_000, "nodes_affected": 2}
BUCKET = {
    "id": 5,
    "name": "media",
    "public_name": "k3v9",
    "origin_id": None,
    "origin_prefix": "",
    "is_public": False,
    "allows_redirect": False,
    "verifies_reads": False,
    "forwards_writes": False,
    "forwarded_headers": [],
    "created_at": "2026-11-21T10:00:00+00:00",
}
KEY = {
    "access_key_id": "ZK7EXAMPLE",
    "label": "site",
    "access": "write",
    "created_at": "2026-11-21T10:00:00+00:00",
    "last_used_at": None,
}


@pytest.fixture
def brain(settings: Settings) -> Iterator[ScriptedBrain]:
    """Return a brain with two nodes, a bucket and a key."""
    scripted = ScriptedBrain()
    settings.CACHE = replace(settings.CACHE, brain_url=scripted.url, secret=SECRET, timeout_s=5)
    client._sessions.clear()
    client.breaker.succeeded()
    scripted.say("GET /v1/nodes", 200, {"nodes": [node(MINE, None), node(THEIRS, None) | ASHBURN]})
    scripted.say("GET /v1/buckets", 200, {"buckets": [BUCKET]})
    scripted.say("GET /v1/access-keys", 200, {"access_keys": [KEY]})
    yield scripted
    client.breaker.succeeded()
    client._sessions.clear()
    scripted.close()


ASHBURN = {"region": "us-east", "health": "offline"}


def an_eventful_day() -> None:
    """Store samples of a day in which the brain restarted once."""
    now = timezone.now()
    values = {name: METRICS[name] for name in FIELDS}
    rows = []
    hits = misses = served = 0
    for step in range(288):
        hits, misses, served = (0, 0, 0) if step == 200 else (hits, misses, served)
        hits += 90 + int(40 * sin(step / 30))
        misses += 10 + int(9 * sin(step / 11))
        served += 9_000_000 + int(6_000_000 * sin(step / 40))
        changed = {
            "total_hits": hits,
            "total_misses": misses,
            "bytes_served": served,
            "p95_latency_ms": 3 + sin(step / 9),
            "p99_latency_ms": 6 + 3 * sin(step / 7),
        }
        rows.append(
            CacheSample(moment=now - timedelta(minutes=5 * (287 - step)), **values | changed)
        )
    CacheSample.objects.bulk_create(rows)


def test_the_page_shows_the_state_of_the_cache(
    visitor: Visitor, brain: ScriptedBrain, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    an_eventful_day()
    visitor.go("/console/cache")
    visitor.sees("90%")
    visitor.sees("2 of 2")
    expect(visitor.page.get_by_role("row", name="us-east offline")).to_be_visible()
    traffic = visitor.page.get_by_role("img", name="Traffic. served: now")
    expect(traffic).to_be_visible()
    # The restart is a gap in the line, not a fall below zero.
    assert (traffic.locator("path").get_attribute("d") or "").count("M") == 2
    picture(visitor.page, "cache")
    visitor.page.get_by_label("Span").select_option("1")
    expect(visitor.page.get_by_role("img", name="Hit ratio.")).to_be_visible()


def test_a_purge_shows_first_what_it_will_delete(visitor: Visitor, brain: ScriptedBrain) -> None:
    brain.say("POST /v1/purge", 200, PURGED)
    sign_up(visitor)
    visitor.go("/console/cache")
    visitor.press("Show what it will hit")
    visitor.sees("Name keys or a prefix")
    visitor.fill("Prefix bucket/…", "media/2026/")
    visitor.press("Show what it will hit")
    visitor.sees("This will hit 3 objects (4.2 MB) on 2 nodes.")
    assert brain.last("POST").body["preview"] is True
    # What was counted is what goes: a change asks to be counted anew.
    visitor.fill("Prefix bucket/…", "media/")
    expect(visitor.page.get_by_role("button", name="Purge now")).to_be_hidden()
    visitor.press("Show what it will hit")
    visitor.press("Purge now")
    visitor.sees_status("3 objects purged")
    asked = brain.last("POST").body
    assert asked["prefix"] == "media/"
    assert "preview" not in asked


def test_a_new_keys_secret_is_shown_once(visitor: Visitor, brain: ScriptedBrain) -> None:
    brain.say("POST /v1/access-keys", 201, KEY | {"secret_access_key": "told-this-once"})
    sign_up(visitor)
    visitor.go("/console/cache")
    visitor.page.get_by_text("New access key").click()
    visitor.page.locator("#key-form").get_by_role("button", name="Create").click()
    visitor.sees("told-this-once")
    visitor.press("I have kept it")
    assert "told-this-once" not in visitor.page.content()


def test_a_bucket_is_made_public_after_a_question(visitor: Visitor, brain: ScriptedBrain) -> None:
    brain.say("PATCH /v1/buckets/5", 200, BUCKET | {"is_public": True})
    sign_up(visitor)
    visitor.go("/console/cache")
    visitor.sees("private, built-in origin")
    visitor.press("Make public")
    visitor.sees("Anyone who knows its address can read every object in it.")
    brain.say("GET /v1/buckets", 200, {"buckets": [BUCKET | {"is_public": True}]})
    visitor.agrees("Make public")
    visitor.sees("public at /p/k3v9/")
    assert brain.last("PATCH").body == {"is_public": True}


def test_readers_see_the_charts_and_no_controls(visitor: Visitor, brain: ScriptedBrain) -> None:
    sign_up(visitor)
    User.unscoped.update(roles=["reader"])
    visitor.go("/console/cache")
    visitor.sees("90%")
    for heading in ("Purge", "Buckets", "Access keys"):
        expect(visitor.page.get_by_role("heading", name=heading, exact=True)).to_be_hidden()


def test_an_unavailable_cache_is_reported_and_breaks_nothing(
    visitor: Visitor, brain: ScriptedBrain
) -> None:
    sign_up(visitor)
    brain.close()
    visitor.go("/console/cache")
    visitor.sees("The edge cache does not answer at the moment.")
    expect(visitor.page.get_by_role("heading", name="Over time")).to_be_visible()
