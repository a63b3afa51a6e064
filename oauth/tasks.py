"""Background work of external sign-in."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from common.scoping import unscoped
from oauth.domains import verification
from oauth.memberships import sync
from oauth.models import OAuthGrant, OAuthTransaction


@app.periodic(cron="*/15 * * * *")
@app.task(queueing_lock="delete_expired_oauth_transactions")
def delete_expired(timestamp: int) -> None:
    """Delete expired transactions and grants, which anyone can create."""
    now = timezone.now()
    for model in (OAuthTransaction, OAuthGrant):
        model.objects.filter(expires_at__lt=now).delete()


@app.periodic(cron="23 4 * * *")
@app.task(queueing_lock="recheck_domains")
@unscoped("upkeep for every organization")
def recheck_domains(timestamp: int) -> None:
    """Check whether verified domains still have their DNS records."""
    verification.recheck_all(now=timezone.now())


@app.periodic(cron="*/10 * * * *")
@app.task(queueing_lock="plan_membership_syncs")
@unscoped("upkeep for every organization")
def plan_membership_syncs(timestamp: int) -> None:
    """Queue a job for each identity whose memberships are due."""
    for identity_id in sync.due(now=timezone.now()):
        # One at a time for each identity: a refresh token works once.
        lock = f"membership sync {identity_id}"
        job = sync_membership.configure(lock=lock, queueing_lock=lock)
        try:
            with transaction.atomic():
                job.defer(identity_id=str(identity_id))
        except AlreadyEnqueued:
            continue


@app.task
@unscoped("a job knows its row alone")
def sync_membership(identity_id: str) -> None:
    """Ask a provider about one identity's memberships; safe to repeat."""
    sync.sync(UUID(identity_id), now=timezone.now())
