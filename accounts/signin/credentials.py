"""Sign-in with e-mail and password: every failure has the same response and costs one hash."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal

from django.conf import settings

from accounts import passwords
from accounts.errors import InvalidCredentials, TooManyAttempts
from accounts.models import User
from accounts.sessions import known_devices
from accounts.sessions.sessions import RequestSource
from common import rate_limits
from common.emails import folded
from common.scoping import unscoped
from common.web.addresses import subscriber_network

# Failed ones, before each further attempt waits, up to 15 minutes.
LOGINS_PER_ACCOUNT: Final = 5
WINDOW: Final = timedelta(minutes=15)
# Attempts at the admin's login and at the API's login are counted separately.
Counter = Literal["login", "admin login"]
TrustedDeviceCheck = Callable[[User | None], bool]


def verify(
    email: str,
    password: str,
    *,
    source: RequestSource,
    now: datetime,
    is_trusted_device: TrustedDeviceCheck | None = None,
    counter: Counter = "login",
) -> User:
    """Return the user whose e-mail and password these are.

    A throttled account gets the same response to a right and to a wrong password, so that the
    throttle reveals nothing. Attempts from other devices do not throttle a device that the
    account's owner has signed in from. is_trusted_device: called for a throttled account only:
    whether the request comes from one of the owner's trusted devices. counter: under which name the
    account and the address are counted.
    Raises InvalidCredentials (401) for an unknown, disabled or throttled account and for a wrong
    password, TooManyAttempts (429) for the address, HashingBusy (503).
    """
    return _verify(
        find(email),
        folded(email),
        password,
        source=source,
        now=now,
        is_trusted_device=is_trusted_device,
        counter=counter,
    )


def verify_again(user: User, password: str, *, source: RequestSource, now: datetime) -> None:
    """Verify the password of a user with a session, whose account may have lost its address.

    The limits are those of ``verify``. Raises InvalidCredentials (401), TooManyAttempts (429),
    HashingBusy (503).
    """
    _verify(user, folded(user.email) or str(user.pk), password, source=source, now=now)


def _verify(
    user: User | None,
    account: str,
    password: str,
    *,
    source: RequestSource,
    now: datetime,
    is_trusted_device: TrustedDeviceCheck | None = None,
    counter: Counter = "login",
) -> User:
    network = subscriber_network(source.address)
    rate_limits.enforce(
        counter,
        network,
        limit=settings.ACCOUNTS.logins_per_address,
        window=WINDOW,
        error=TooManyAttempts,
        now=now,
    )
    counted = _count(counter, account, user, source, now)
    may_proceed = counted is not None or (is_trusted_device is not None and is_trusted_device(user))
    is_right = passwords.is_right(user, password)
    if user is None or not (may_proceed and is_right and user.is_active):
        raise InvalidCredentials
    if counted is not None:
        # A trusted device (`counted` is None) does not reset the failures of others.
        rate_limits.reset(*counted)
    rate_limits.uncount(counter, network, window=WINDOW, now=now)
    passwords.upgrade(user, password)
    return user


def _count(
    counter: Counter, account: str, user: User | None, source: RequestSource, now: datetime
) -> tuple[str, str] | None:
    """Count an attempt; return the counter that allows it, None if the attempt is throttled.

    The counter is the account's or, for a device that the owner has signed in from, the device's:
    otherwise an attacker could lock the owner out with one wrong password a minute.
    """
    free = LOGINS_PER_ACCOUNT
    of_account = (counter, account)
    if rate_limits.attempt(*of_account, free=free, now=now):
        return of_account
    device = known_devices.device_of(user, source)
    of_device = (f"{counter} on a device", device)
    # An unknown device is counted as well, so that it takes the same time.
    is_free = rate_limits.attempt(*of_device, free=free, now=now)
    return of_device if known_devices.is_known(user, device) and is_free else None


@unscoped("an address has one account among all organizations")
def find(email: str) -> User | None:
    """Return the user of an address, without regard to the case of A to Z."""
    if "\0" in email:
        return None
    found: User | None = (
        User.objects.select_related("organization", "last_environment")
        .filter(email__iexact=email.strip())
        .exclude(email="")
        .first()
    )
    # The index folds more letters than A to Z; such an address cannot be registered twice.
    return found if found is not None and folded(found.email) == folded(email) else None


def lock_unchanged(user: User) -> None:
    """Lock an authenticated user's row and check that it has not changed since it was read.

    A later change of the password finds what this transaction has created, and ends it.
    Raises InvalidCredentials (401) if the password was changed or the user disabled in between.
    """
    rows = User.objects.select_for_update(no_key=True)
    if not rows.filter(pk=user.pk, password=user.password, is_active=True).values("pk").first():
        raise InvalidCredentials
