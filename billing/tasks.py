"""Background jobs of billing."""

import contextlib
from uuid import UUID

import structlog
from django.utils import timezone
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from billing import holds, ledger, quarantines
from billing.payouts import requests
from billing.payouts.providers import PayoutProviderUnavailable
from billing.service import brain_notifications, states
from billing.usage import charges_and_shares, usage_import
from common.jobs import WEEK_ATTEMPTS, Retry
from common.scoping import unscoped, within_organization
from edgecache.api.errors import CacheUnavailable

log = structlog.get_logger(__name__)


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="billing_settle")
@unscoped("upkeep for every organization")
def settle(timestamp: int) -> None:
    """Import the brain's usage lines and charge them."""
    try:
        usage_import.import_usage(now=timezone.now())
    except CacheUnavailable:
        log.info("billing_usage_not_imported")
    finally:
        # Earlier imports are settled even if a page was refused.
        charges_and_shares.settle()
        states.refresh_all(now=timezone.now())
    with contextlib.suppress(CacheUnavailable):
        brain_notifications.send_unconfirmed()
        brain_notifications.send_networks(now=timezone.now())


@app.task(retry=Retry(max_attempts=WEEK_ATTEMPTS, wait=3, linear_wait=10))
def notify_brain(organization_id: int) -> None:
    """Notify the brain whether other operators' nodes serve an organization.

    Raises CacheUnavailable, so that the job runs again.
    """
    with within_organization(organization_id):
        brain_notifications.notify(organization_id)


@app.periodic(cron="50 2 * * *")
@app.task(queueing_lock="billing_decide_again")
@unscoped("upkeep for every organization")
def decide_again(timestamp: int) -> None:
    """Have all of these decisions sent again after the next settlement."""
    brain_notifications.decide_again(now=timezone.now())


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="billing_quarantines")
@unscoped("upkeep for every organization")
def follow_quarantines(timestamp: int) -> None:
    """Record quarantined nodes, and mail their operators."""
    try:
        quarantines.record_new(now=timezone.now())
    except CacheUnavailable:
        log.info("billing_quarantines_not_followed")


@app.periodic(cron="20 2 * * *")
@app.task(queueing_lock="billing_release")
@unscoped("upkeep for every organization")
def release_earnings(timestamp: int) -> None:
    """Make earnings payable after their hold."""
    holds.release_all(now=timezone.now())


# Repeated often within the first hours; payouts that are open then are checked each hour.
@app.task(retry=RetryStrategy(max_attempts=12, wait=30, linear_wait=60))
@unscoped("a job knows its row alone")
def send_payout(payout_id: str) -> None:
    """Send a payout.

    Raises PayoutProviderUnavailable, so that the job runs again; the payout is looked up first
    then.
    """
    requests.send(UUID(payout_id), now=timezone.now())


@app.periodic(cron="25 * * * *")
@app.task(queueing_lock="billing_payouts")
@unscoped("upkeep for every organization")
def follow_payouts(timestamp: int) -> None:
    """Ask providers for the state of the payouts that were sent."""
    for payout in requests.open_payouts():
        try:
            requests.send(payout.pk, now=timezone.now())
        except PayoutProviderUnavailable:
            log.warning("billing_payout_provider_away", payout=str(payout.pk))


@app.periodic(cron="40 2 * * *")
@app.task(queueing_lock="billing_verify")
def verify_ledger(timestamp: int) -> None:
    """Check the ledger; a fault is logged as an error, for the operators' alarm."""
    result = ledger.verify()
    if result.fault:
        log.error("billing_ledger_broken", fault=result.fault)
    else:
        log.info("billing_ledger_verified", journals=result.journals, entries=result.entries)
