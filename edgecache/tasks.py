"""Background jobs of the platform's side of the cache."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.utils import timezone
from procrastinate.contrib.django import app

from common.jobs import WEEK_ATTEMPTS, Retry
from common.principals import Scope
from common.scoping import unscoped, within_organization
from edgecache.api import access_keys, buckets, client, hosts, metrics_history, nodes
from edgecache.api.errors import CacheUnavailable
from environments.models import Environment

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
    """Store one sample of the metrics; while the brain does not answer there is a gap."""
    try:
        metrics_history.collect(now=timezone.now())
    except CacheUnavailable:
        log.info("cache_metrics_missed")


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="cache_follow_nodes")
@unscoped("upkeep for every organization")
def follow_nodes(timestamp: int) -> None:
    """Tell operators what became of their nodes; while the brain does not answer, later."""
    if not client.is_enabled():
        return
    try:
        nodes.record_state_changes(now=timezone.now())
    except CacheUnavailable:
        log.info("cache_nodes_not_followed")


@app.periodic(cron="4 * * * *")
@app.task(queueing_lock="cache_roll_up")
def roll_up_metrics(timestamp: int) -> None:
    """Roll the samples up by the hour."""
    metrics_history.roll_up(now=timezone.now())


@app.periodic(cron="*/10 * * * *")
@app.task(queueing_lock="cache_check_host_records")
@unscoped("upkeep for every organization")
def check_host_records(timestamp: int) -> None:
    """Check that buckets' hosts still have their DNS records."""
    try:
        hosts.check_due_records()
    except CacheUnavailable:
        log.info("cache_host_records_not_checked")


@app.task(retry=Retry(max_attempts=WEEK_ATTEMPTS, wait=3, linear_wait=10))
@unscoped("a job knows its row alone")
def close_environment(environment_pk: int) -> None:
    """Revoke a deleted environment's keys and public access; its objects are deleted later.

    Raises CacheUnavailable, so that the job runs again.
    """
    environment = Environment.objects.filter(pk=environment_pk).first()
    if environment is not None:
        scope = Scope(environment.organization_id, environment_pk)
        access_keys.revoke_all(scope)
        buckets.make_all_private(scope)


@app.task(retry=Retry(max_attempts=WEEK_ATTEMPTS, wait=3, linear_wait=10))
def revoke_keys_created_by(organization_id: int, user_id: str, until: str) -> None:
    """Revoke the access keys that a former admin created.

    Raises CacheUnavailable, so that the job runs again.
    """
    with within_organization(organization_id):
        access_keys.revoke_created_by(
            organization_id, UUID(user_id), until=datetime.fromisoformat(until)
        )
