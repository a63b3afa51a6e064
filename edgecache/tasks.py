"""Background work of the cache's platform side."""

from datetime import timedelta
from typing import Final

import structlog
from django.conf import settings
from django.utils import timezone
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from edgecache.api import client, holdings, hosts, metrics_history
from edgecache.api.errors import CacheUnavailable
from environments.models import Environment
from platform_site.lib.principals import Scope

log = structlog.get_logger(__name__)

MINUTE_S: Final = 60


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="cache_plan_polls")
def plan_polls(timestamp: int) -> None:
    """Queue this minute's polls, one every ZCACHE_METRICS_INTERVAL seconds."""
    if not client.is_enabled():
        return
    interval_s = settings.CACHE.metrics_interval_s
    start = timezone.now()
    for delay_s in range(0, MINUTE_S, interval_s):
        poll_metrics.configure(schedule_at=start + timedelta(seconds=delay_s)).defer()


@app.task
def poll_metrics() -> None:
    """Keep one sample of the metrics; a brain that is away leaves a gap, the next poll comes."""
    try:
        metrics_history.collect(now=timezone.now())
    except CacheUnavailable:
        log.info("cache_metrics_missed")


@app.periodic(cron="4 * * * *")
@app.task(queueing_lock="cache_roll_up")
def roll_up_metrics(timestamp: int) -> None:
    """Roll the samples up by the hour."""
    metrics_history.roll_up(now=timezone.now())


@app.periodic(cron="*/10 * * * *")
@app.task(queueing_lock="cache_look_at_hosts")
def look_at_hosts_again(timestamp: int) -> None:
    """Look whether buckets' hosts still have their records; those due wait for a brain away."""
    try:
        hosts.look_again()
    except CacheUnavailable:
        log.info("cache_hosts_not_looked_at")


@app.task(retry=RetryStrategy(max_attempts=12, exponential_wait=3))
def close_environment(environment_pk: int) -> None:
    """Shut a deleted environment's objects off at once; they are dropped with its other data.

    Raises CacheUnavailable, so that it is tried again.
    """
    environment = Environment.unscoped.filter(pk=environment_pk).first()  # unscoped: by key
    if environment is not None:
        holdings.close(Scope(environment.organization_id, environment_pk))
