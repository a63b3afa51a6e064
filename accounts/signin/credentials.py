"""Signing in with e-mail and password: one answer for every failure, one hash in each case."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal

from django.conf import settings

from accounts import limits, passwords
from accounts.errors import InvalidCredentials, TooManyAttempts
from accounts.models import User
from accounts.sessions.sessions import Origin
from accounts.signin import known_devices
from platform_site.lib.emails import folded
from platform_site.lib.web.addresses import network_of

WINDOW: Final = timedelta(minutes=15)
# Whose tries are counted together: guesses at the admin's login do not slow a login by the API.
Counter = Literal["login", "admin login"]
Vouch = Callable[[User | None], bool]


def verify(
    email: str,
    password: str,
    *,
    origin: Origin,
    now: datetime,
    vouch: Vouch | None = None,
    counter: Counter = "login",
) -> User:
    """Return the user whose e-mail and password these are.

    A slowed account answers a right and a wrong password alike, so that the wait reveals nothing.
    Tries from elsewhere do not slow those from a device that its owner has signed in from.
    vouch: asked for a slowed account alone, whether this try comes from where its owner has been.
    counter: what the try is counted as, for the account and for the address.
    Raises InvalidCredentials (401) for unknown, wrong, disabled and slowed alike, TooManyAttempts
    (429) for the address, HashingBusy (503).
    """
    network = network_of(origin.address)
    wait_s = limits.take(
        counter, network, limit=settings.ACCOUNTS.logins_per_address, window=WINDOW, now=now
    )
    if wait_s:
        raise TooManyAttempts(retry_after_s=wait_s)
    user = find(email)
    counted = _count(counter, folded(email), user, origin, now)
    may_proceed = counted is not None or (vouch is not None and vouch(user))
    is_right = passwords.is_right(user, password)
    if user is None or not (may_proceed and is_right and user.is_active):
        raise InvalidCredentials
    if counted is not None:
        # A caller that is vouched for has its own tries, and does not reset a stranger's.
        limits.reset(*counted)
    limits.uncount(counter, network, window=WINDOW, now=now)
    passwords.upgrade(user, password)
    return user


def _count(
    counter: Counter, account: str, user: User | None, origin: Origin, now: datetime
) -> tuple[str, str] | None:
    """Count a try; return the counter that lets it go on, None if all that it may use are slowed.

    The account's, or else that of a device its owner has signed in from: a stranger who sends one a
    minute from elsewhere would keep the owner out for as long as they are sent.
    """
    free = settings.ACCOUNTS.logins_per_account
    of_account = (counter, account)
    if limits.attempt(*of_account, free=free, now=now):
        return of_account
    device = known_devices.device_of(user, origin)
    of_device = (f"{counter} on a device", device)
    # Counted for an unknown device as well, so that it takes the same time.
    is_free = limits.attempt(*of_device, free=free, now=now)
    return of_device if known_devices.is_known(user, device) and is_free else None


def find(email: str) -> User | None:
    """Return the user of an address, without regard to the case of A to Z."""
    if "\0" in email:
        return None
    found: User | None = (
        User.unscoped.select_related("organization", "last_environment")  # unscoped: signing in
        .filter(email__iexact=email.strip())
        .exclude(email="")
        .first()
    )
    # The index knows more letters that have one capital, so that no two of them sign up.
    return found if found is not None and folded(found.email) == folded(email) else None


def refuse_changed(user: User) -> None:
    """Hold a user, who was just proven, as it was read, until the transaction ends.

    A later change of the password finds what this transaction has begun, and ends it.
    Raises InvalidCredentials (401) where the password was changed, or the user disabled, meanwhile.
    """
    rows = User.unscoped.select_for_update(no_key=True)  # unscoped: the user is signing in
    if not rows.filter(pk=user.pk, password=user.password, is_active=True).values("pk").first():
        raise InvalidCredentials
