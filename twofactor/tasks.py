"""Background tasks of the second factor."""

from django.utils import timezone
from procrastinate.contrib.django import app

from common.scoping import unscoped
from twofactor.models import Challenge, Enrolment, PasskeyRequest, PendingSignIn, TrustedDevice


@app.periodic(cron="47 * * * *")
@app.task(queueing_lock="forget_expired_second_factors")
@unscoped("upkeep for every organization")
def forget_expired(timestamp: int) -> None:
    """Delete expired challenges, enrolments, sign-ins and trusted devices."""
    now = timezone.now()
    for model in (Challenge, Enrolment, PendingSignIn, TrustedDevice):
        model.objects.filter(expires_at__lt=now).delete()


@app.periodic(cron="*/15 * * * *")
@app.task(queueing_lock="forget_expired_passkey_requests")
def forget_expired_passkey_requests(timestamp: int) -> None:
    """Delete unfinished sign-ins by passkey, which anyone can start."""
    PasskeyRequest.objects.filter(expires_at__lt=timezone.now()).delete()
