"""The admin's first page: the state of the platform, and open problems (settings.UNFOLD)."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.timesince import timesince

from platform_site.models import ActivitySample, HttpSample
from platform_site.staff import activity, figures
from platform_site.staff.activity import SLOT
from platform_site.staff.board import Alert, Board, Card, Chart, Series, clock, link
from platform_site.staff.figures import Organizations, Queue

# After this time two roll-ups are missing.
LATE: Final = timedelta(minutes=25)
SLOW_QUEUE: Final = timedelta(minutes=10)


def fill(_request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add the dashboard to the context of the admin's first page."""
    now = timezone.now()
    board = _platform(now)
    if settings.HAS_CACHE:
        from platform_site.staff import cache_dashboard  # noqa: PLC0415 - only with the feature

        cache_dashboard.add(board, now=now)
    return context | {"board": board, "now": now}


def _platform(now: datetime) -> Board:
    organizations = figures.organizations(now=now)
    samples = figures.samples(now=now)
    http = activity.http_samples(now=now)
    queue = figures.queue()
    mail = figures.failed_deliveries(now=now)
    return Board(
        cards=[
            _organizations_card(organizations),
            _sign_in_card(samples),
            _http_card(http),
            _sql_card(samples),
            _queue_card(queue, now),
            Card(
                "Mail and SMS failed",
                str(mail["failed"]),
                f"{mail['given_up']} given up in 24 h",
                link("outbox_delivery_changelist", "state__exact=failed"),
            ),
        ],
        alerts=[*_late_alerts(samples, now), *_queue_alerts(queue, now), *_mail_alerts(mail, now)],
        charts=[
            _http(http),
            _http_latency(http),
            _sign_ins(samples),
            _sql(samples),
            _latency(samples),
            _active(organizations),
        ],
    )


def _organizations_card(found: Organizations) -> Card:
    active = found.by_day[-1][1] if found.by_day else 0
    note = f"{found.new:,} new in 24 h, {found.new_of_week:,} in 7 days; {active:,} active today"
    path = link("environments_organization_changelist")
    return Card("Organizations", f"{found.total:,}", note, path)


def _sign_in_card(samples: Sequence[ActivitySample]) -> Card:
    done = sum(sample.sign_ins for sample in samples)
    refused = sum(sample.sign_ins_refused for sample in samples)
    path = link("accounts_session_changelist")
    return Card("Sign-ins in 24 h", f"{done:,}", f"{refused:,} refused", path)


def _http_card(samples: Sequence[HttpSample]) -> Card:
    done = sum(sample.requests for sample in samples)
    failed = sum(sample.errors for sample in samples)
    share = 100 * failed / done if done else 0
    note = f"{share:.2f} % server errors"
    return Card("HTTP requests in 24 h", f"{done:,}", note, "")


def _sql_card(samples: Sequence[ActivitySample]) -> Card:
    done = sum(sample.sql_requests for sample in samples)
    failed = sum(sample.sql_errors for sample in samples)
    rate = done / (len(samples) * SLOT.total_seconds()) if samples else 0
    share = 100 * failed / done if done else 0
    note = f"{rate:.1f} a second, {share:.1f} % errors"
    return Card("SQL requests in 24 h", f"{done:,}", note, link("sqlgateway_database_changelist"))


def _queue_card(queue: Queue, now: datetime) -> Card:
    oldest = f"oldest {timesince(queue.oldest, now)}" if queue.oldest else "none late"
    path = link("procrastinate_procrastinatejob_changelist", "status__exact=todo")
    return Card("Tasks waiting", f"{queue.waiting:,}", f"{oldest}; {queue.failed:,} failed", path)


def _late_alerts(samples: Sequence[ActivitySample], now: datetime) -> Iterable[Alert]:
    if not samples or samples[-1].begins_at < now - LATE:
        path = link("procrastinate_procrastinatejob_changelist")
        yield Alert("No figures for 25 minutes: is the task worker running?", path)


def _queue_alerts(queue: Queue, now: datetime) -> Iterable[Alert]:
    path = link("procrastinate_procrastinatejob_changelist")
    if queue.failed:
        yield Alert(f"{queue.failed:,} tasks have failed.", f"{path}?status__exact=failed")
    if queue.oldest and queue.oldest < now - SLOW_QUEUE:
        late = timesince(queue.oldest, now)
        yield Alert(f"A task has been waiting for {late}.", f"{path}?status__exact=todo")


def _mail_alerts(mail: dict[str, Any], now: datetime) -> Iterable[Alert]:
    if mail["failed"]:
        oldest = timesince(mail["oldest"], now)
        text = f"Mails or SMS that failed: {mail['failed']}, the oldest {oldest} ago."
        yield Alert(text, link("outbox_delivery_changelist", "state__exact=failed"))


def _sign_ins(samples: Sequence[ActivitySample]) -> Chart:
    done, refused = [s.sign_ins for s in samples], [s.sign_ins_refused for s in samples]
    return Chart(
        "Sign-ins",
        f"{sum(done):,} sign-ins in 24 hours, {sum(refused):,} refused.",
        "line",
        clock(s.begins_at for s in samples),
        [Series("Refused", "bad", refused), Series("Signed in", "primary", done)],
    )


def _http(samples: Sequence[HttpSample]) -> Chart:
    done, failed = [s.requests for s in samples], [s.errors for s in samples]
    return Chart(
        "HTTP requests",
        f"{sum(done):,} requests in 24 hours, {sum(failed):,} with a server error.",
        "line",
        clock(s.begins_at for s in samples),
        [Series("Server errors", "bad", failed), Series("Requests", "primary", done)],
    )


def _http_latency(samples: Sequence[HttpSample]) -> Chart:
    medians = [activity.percentile(s.counts, 0.5) for s in samples]
    tails = [activity.percentile(s.counts, 0.95) for s in samples]
    known = [tail for tail in tails if tail is not None]
    worst = f"{max(known):.0f} ms" if known else "unknown"
    return Chart(
        "HTTP latency",
        f"The highest 95th percentile of ten minutes was {worst}.",
        "line",
        clock(s.begins_at for s in samples),
        [
            Series("95th percentile", "primary", [_rounded(each) for each in tails]),
            Series("Median", "quiet", [_rounded(each) for each in medians]),
        ],
        suffix="ms",
    )


def _sql(samples: Sequence[ActivitySample]) -> Chart:
    done, failed = [s.sql_requests for s in samples], [s.sql_errors for s in samples]
    return Chart(
        "SQL requests",
        f"{sum(done):,} requests in 24 hours, {sum(failed):,} with an error.",
        "line",
        clock(s.begins_at for s in samples),
        [Series("Errors", "bad", failed), Series("Requests", "primary", done)],
    )


def _latency(samples: Sequence[ActivitySample]) -> Chart:
    known = [s.sql_p95_ms for s in samples if s.sql_p95_ms is not None]
    worst = f"{max(known):.0f} ms" if known else "unknown"
    return Chart(
        "SQL latency",
        f"The highest 95th percentile of ten minutes was {worst}.",
        "line",
        clock(s.begins_at for s in samples),
        [
            Series("95th percentile", "primary", [_rounded(s.sql_p95_ms) for s in samples]),
            Series("Median", "quiet", [_rounded(s.sql_p50_ms) for s in samples]),
        ],
        suffix="ms",
    )


def _active(found: Organizations) -> Chart:
    active = dict(found.by_day)
    days = sorted(active.keys() | found.new_by_day.keys())
    latest = found.by_day[-1][1] if found.by_day else 0
    return Chart(
        "Organizations by day",
        f"{latest:,} active today, {found.new:,} new in 24 hours.",
        "bar",
        [f"{day:%d %b}" for day in days],
        [
            Series("New", "good", [found.new_by_day.get(day, 0) for day in days]),
            Series("Active", "primary", [active.get(day, 0) for day in days]),
        ],
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
