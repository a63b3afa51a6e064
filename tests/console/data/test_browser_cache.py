"""In a browser: the cache's charts and nodes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from math import sin

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect
from pytest_django import Settings

from edgecache.api import client
from edgecache.api.metrics_history import FIELDS
from edgecache.models import CacheSample
from tests.console.browser import Visitor
from tests.console.journeys import sign_up
from tests.edgecache.api.brain import METRICS, SECRET, ScriptedBrain
from tests.edgecache.api.test_endpoints import MINE, THEIRS, node

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def brain(settings: Settings) -> Iterator[ScriptedBrain]:
    """Return a brain with two nodes."""
    scripted = ScriptedBrain()
    settings.CACHE = replace(settings.CACHE, brain_url=scripted.url, secret=SECRET, timeout_s=5)
    client._sessions.clear()
    client.breaker.succeeded()
    scripted.say("GET /v1/nodes", 200, {"nodes": [node(MINE, None), node(THEIRS, None) | ASHBURN]})
    scripted.say("GET /v1/buckets", 200, {"buckets": []})
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
    assert ", least 10 kB/s" in (traffic.get_attribute("aria-label") or "")
    picture(visitor.page, "cache")
    visitor.page.get_by_label("Span").select_option("1")
    expect(visitor.page.get_by_role("img", name="Hit ratio.")).to_be_visible()


def drawn(chart: Locator) -> int:
    """Return how many pixels of a chart have its first line's colour."""
    return int(
        chart.evaluate(
            """(figure) => {
  const canvas = figure.querySelector("canvas");
  const mark = getComputedStyle(figure.querySelector(".mark")).borderLeftColor;
  const context = canvas.getContext("2d");
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  context.fillStyle = mark;
  const wanted = [1, 3, 5].map((at) => parseInt(context.fillStyle.slice(at, at + 2), 16));
  let found = 0;
  for (let at = 0; at < pixels.length; at += 4) {
    const isSame = wanted.every((each, part) => Math.abs(pixels[at + part] - each) < 9);
    if (isSame && pixels[at + 3] > 200) found += 1;
  }
  return found;
}"""
        )
    )


def test_a_value_without_a_neighbour_is_drawn(visitor: Visitor, brain: ScriptedBrain) -> None:
    sign_up(visitor)
    now = timezone.now()
    values = {name: METRICS[name] for name in FIELDS}
    # Of two samples the second has a value; the brain restarts, and then one more has.
    for hours, hits in ((9, 1000), (8, 1900), (6, 0), (4, 500), (2, 0)):
        changed = {"total_hits": hits, "total_misses": 0, "bytes_served": hits * 1000}
        at = now - timedelta(hours=hours)
        CacheSample.objects.create(moment=at, **values | changed)
    visitor.go("/console/cache")
    charts = [visitor.page.locator(f"#chart-{name}") for name in ("ratio", "traffic")]
    for chart in charts:
        expect(chart.get_by_role("img")).to_be_visible()
        assert drawn(chart) > 20
    # The labels are hours: of which zone stands beside them once.
    expect(charts[0].locator("figcaption")).to_contain_text(re.compile("GMT|UTC"))


def test_a_cache_without_buckets_leads_to_the_first_one(
    visitor: Visitor, brain: ScriptedBrain
) -> None:
    sign_up(visitor)
    unread = {"total_hits": 0, "total_misses": 0, "hit_ratio": 0.0, "p95_latency_ms": 0.0}
    brain.say("GET /v1/metrics", 200, METRICS | unread)
    visitor.go("/console/cache")
    expect(visitor.page.locator('[data-slot="hit_ratio"]')).to_have_text("–")
    visitor.page.get_by_role("link", name="Create a bucket").click()
    visitor.is_at("/console/objects")
    visitor.sees("No bucket yet")
    expect(visitor.page.get_by_role("button", name="Purge everything")).to_have_count(0)


def test_an_unavailable_cache_is_reported_and_breaks_nothing(
    visitor: Visitor, brain: ScriptedBrain
) -> None:
    sign_up(visitor)
    brain.close()
    client._sessions.clear()
    visitor.go("/console/cache")
    visitor.sees("The edge cache does not answer at the moment.")
    expect(visitor.page.get_by_role("heading", name="Over time")).to_be_visible()
