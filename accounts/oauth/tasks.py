"""Background work of external sign-in."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from accounts.oauth.domains import verification
from accounts.oauth.memberships import sync
from accounts.oauth.models import ProviderGrant, ProviderVisit


@app.periodic(cron="*/15 * * * *")
@app.task(queueing_lock="forget_expired_external_sign_ins")
def forget_expired(timestamp: int) -> None:
    """Delete visits and secrets whose time is over; anybody can begin one."""
    now = timezone.now()
    for model in (ProviderVisit, ProviderGrant):
        model.objects.filter(expires_at__lt=now).delete()


@app.periodic(cron="23 4 * * *")
@app.task(queueing_lock="look_at_domains_again")
def look_at_domains_again(timestamp: int) -> None:
    """Look whether proven domains still have their records."""
    verification.look_again(now=timezone.now())


@app.periodic(cron="*/10 * * * *")
@app.task(queueing_lock="plan_membership_syncs")
def plan_membership_syncs(timestamp: int) -> None:
    """Queue the identities that are to be asked about, each as a job of its own."""
    for identity_id in sync.due(now=timezone.now()):
        # One at a time for each: a provider takes a refresh token once.
        lock = f"membership sync {identity_id}"
        job = sync_membership.configure(lock=lock, queueing_lock=lock)
        try:
            with transaction.atomic():
                job.defer(identity_id=str(identity_id))
        except AlreadyEnqueued:
            continue


@app.task
def sync_membership(identity_id: str) -> None:
    """Ask a provider about one identity's memberships; safe to repeat."""
    sync.sync(UUID(identity_id), now=timezone.now())
