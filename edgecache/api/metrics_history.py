"""The metrics over time: sampled from the brain, rolled up by the hour, thinned for charts."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Max
from django.db.models.functions import TruncHour
from django.utils import timezone

from edgecache.api import cluster_status
from edgecache.models import CacheSample

FINE: Final = timedelta(days=2)
RETENTION: Final = timedelta(days=366)
CHART_POINTS: Final = 360
FIELDS: Final = (*cluster_status.COUNTERS, *cluster_status.RATES)


def collect(*, now: datetime) -> bool:
    """Store a sample of the brain's metrics; False if this interval has one already.

    Raises CacheUnavailable.
    """
    moment = _cut(now)
    if CacheSample.objects.filter(is_hourly=False, moment=moment).exists():
        return False
    metrics = cluster_status.cluster_metrics()
    sample = CacheSample(moment=moment, **{name: metrics[name] for name in FIELDS})
    made = CacheSample.objects.bulk_create([sample], ignore_conflicts=True)
    return bool(made)


def roll_up(*, now: datetime) -> None:
    """Keep the last sample of each full hour for a year, the others for two days."""
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    fine = CacheSample.objects.filter(is_hourly=False, moment__lt=this_hour)
    last_ones = fine.annotate(hour=TruncHour("moment")).values("hour").annotate(last=Max("moment"))
    hourly = []
    for sample in CacheSample.objects.filter(
        is_hourly=False, moment__in=[row["last"] for row in last_ones]
    ):
        hour = sample.moment.replace(minute=0, second=0, microsecond=0)
        kept = {name: getattr(sample, name) for name in FIELDS}
        hourly.append(CacheSample(moment=hour, is_hourly=True, **kept))
    CacheSample.objects.bulk_create(hourly, ignore_conflicts=True)
    CacheSample.objects.filter(is_hourly=False, moment__lt=now - FINE).delete()
    CacheSample.objects.filter(is_hourly=True, moment__lt=now - RETENTION).delete()


def latest(*, hours: int) -> dict[str, Any]:
    """Return the samples of the latest hours, oldest first, thinned to at most 360.

    Shape: ``{"interval_s", "samples"}``; a sample has the published metrics fields.
    """
    span = timedelta(hours=hours)
    is_hourly = span > FINE
    step = timedelta(hours=1) if is_hourly else timedelta(seconds=settings.CACHE.metrics_interval_s)
    rows = list(
        CacheSample.objects.filter(is_hourly=is_hourly, moment__gt=timezone.now() - span).order_by(
            "-moment"
        )
    )
    # From the newest back, so that the latest sample is always there.
    every = max(1, -(-len(rows) // CHART_POINTS))
    kept = rows[::every][::-1]
    return {
        "interval_s": int(step.total_seconds()) * every,
        "samples": [sample.as_metrics() for sample in kept],
    }


def _cut(now: datetime) -> datetime:
    interval_s = settings.CACHE.metrics_interval_s
    return datetime.fromtimestamp(int(now.timestamp()) // interval_s * interval_s, tz=now.tzinfo)
