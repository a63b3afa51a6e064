"""Background tasks of accounts."""

from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone
from procrastinate.contrib.django import app

from accounts.api_keys import api_keys
from accounts.models import Session
from accounts.reclaim import address_release
from accounts.sessions import known_devices
from accounts.signin import mailbox_proofs
from accounts.signup_links import links
from accounts.terminal import terminal_sign_ins
from common.scoping import unscoped

# Ended sessions are kept this long for the user's list and for replay detection: a refresh token is
# valid for at most its own lifetime after its session has ended.
KEEP_ENDED: Final = timedelta(days=30)
BATCH: Final = 2000


@app.periodic(cron="41 * * * *")
@app.task(queueing_lock="forget_expired_accounts_data")
@unscoped("upkeep for every organization")
def forget_expired(timestamp: int) -> None:
    """Delete expired data: sessions, keys, links, codes, accounts without an address."""
    now = timezone.now()
    address_release.delete_expired(now=now)
    links.delete_expired(now=now)
    terminal_sign_ins.delete_old(now=now)
    api_keys.delete_old(now=now)
    known_devices.delete_old(now=now)
    mailbox_proofs.delete_old(now=now)
    _delete_sessions(now)


def _delete_sessions(now: datetime) -> None:
    """Delete old sessions, a few at a time: each is read first, with what refers to it."""
    old = Session.objects.filter(ends_at__lt=now - KEEP_ENDED)
    while keys := list(old.values_list("pk", flat=True)[:BATCH]):
        Session.objects.filter(pk__in=keys).delete()
