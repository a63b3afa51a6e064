"""Background tasks of passkeys."""

from django.utils import timezone
from procrastinate.contrib.django import app

from twofactor.models import PasskeyRequest


@app.periodic(cron="*/15 * * * *")
@app.task(queueing_lock="forget_expired_passkey_requests")
def forget_expired(timestamp: int) -> None:
    """Delete unfinished sign-ins by passkey, which anyone can start."""
    PasskeyRequest.objects.filter(expires_at__lt=timezone.now()).delete()
