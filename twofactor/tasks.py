"""Background tasks of the second factor."""

from django.utils import timezone
from procrastinate.contrib.django import app

from twofactor.models import Challenge, Enrolment, PendingSignIn, TrustedDevice


@app.periodic(cron="47 * * * *")
@app.task(queueing_lock="forget_expired_second_factors")
def forget_expired(timestamp: int) -> None:
    """Delete expired challenges, enrolments, sign-ins and trusted devices."""
    now = timezone.now()
    for model in (Challenge, Enrolment, PendingSignIn, TrustedDevice):
        model.unscoped.filter(expires_at__lt=now).delete()  # unscoped: housekeeping
