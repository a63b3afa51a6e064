"""Trusted devices: they skip the second factor at login, never a step-up."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Func, QuerySet, Value

from accounts.models import Session, User
from accounts.sessions.authentication import TRUSTED_DEVICE
from accounts.signin.signin import SignInAttempt
from audit import trail
from common.principals import PlatformRequest
from twofactor.audit_tags import TwoFactorTag
from twofactor.errors import DeviceNotFound
from twofactor.factors.holdings import Holdings
from twofactor.models import TrustedDevice
from twofactor.stored_secrets import digest, digests, is_same

LIFE: Final = timedelta(days=30)
HEADER: Final = "X-Device-Token"
PURPOSE: Final = "device"
# Maximum devices of a user; a new one replaces the least recently used one.
MAX_DEVICES: Final = 50
# A stolen device id must not allow unlimited guesses.
MAX_FAILURES: Final = 10
UNKNOWN_USER: Final = UUID(int=0)


def trust(user: User, name: str, *, now: datetime) -> TrustedDevice:
    """Trust a device after a second factor was proven on it."""
    device = TrustedDevice(
        organization_id=user.organization_id,
        user=user,
        name=name or "Unnamed device",
        rotated_at=now,
        created_at=now,
        last_used_at=now,
        expires_at=now + LIFE,
    )
    device.save(force_insert=True)
    mine = TrustedDevice.objects.filter(user=user)
    surplus = mine.order_by("-last_used_at", "-id").values_list("pk", flat=True)[MAX_DEVICES:]
    mine.filter(pk__in=list(surplus)).delete()
    return device


def token_for(device: TrustedDevice, *, generation: int | None = None) -> str:
    """Return the device's token: its id and 256 bits derived with the secret key."""
    number = device.generation if generation is None else generation
    return f"{device.id}.{digest(PURPOSE, device.id, number)}"


def _is_proof(proof: str, device: TrustedDevice, generation: int) -> bool:
    return any(is_same(proof, known) for known in digests(PURPOSE, device.id, generation))


def _named(request: PlatformRequest) -> tuple[UUID, str] | None:
    """Return the device's id and secret part from the request's header; None without a valid id."""
    device_id, _, proof = request.headers.get(HEADER, "").partition(".")
    try:
        return UUID(device_id), proof
    except ValueError:
        return None


def is_from_trusted_device(request: PlatformRequest, user: User | None, now: datetime) -> bool:
    """True if a sign-in to a throttled account comes from a trusted device of its owner.

    Attackers therefore only throttle themselves. Each such sign-in counts as a failure of the
    device before the password is checked; the tenth failure in a row deletes the device.
    user: None for an address without an account, which takes the same time.
    """
    named = _named(request)
    if named is None:
        return False
    key, proof = named
    with transaction.atomic():
        device = _lock(user, key, now)
        # Not counted: 256 bits cannot be guessed, and knowing an id must not be enough to delete
        # the device.
        if device is None or not _is_current(proof, device, now):
            return False
        _count_failure(device)
    return True


def skip_second_factor(
    request: PlatformRequest, attempt: SignInAttempt, user_holdings: Holdings
) -> bool:
    """True if a trusted device replaces the second factor; its token is then rotated.

    The new token is added to the response. A token that is sent twice within ten seconds (a
    repeated login) is replaced by the same new token both times.
    """
    named = _named(request)
    if named is None:
        return False
    key, proof = named
    with transaction.atomic():
        device = _lock(attempt.user, key, attempt.now)
        if device is None or not user_holdings.allowed:
            return False
        if not _holds(device, proof, attempt.now):
            _count_failure(device)
            return False
    attempt.amr.append(TRUSTED_DEVICE)
    attempt.extra["device_token"] = token_for(device)
    trail.record_user(request, TwoFactorTag.TRUSTED_DEVICE_USE, attempt.user, device=str(device.id))
    return True


def _lock(user: User | None, key: UUID, now: datetime) -> TrustedDevice | None:
    organization_id, user_id = (user.organization_id, user.pk) if user else (0, UNKNOWN_USER)
    rows = TrustedDevice.objects.filter(organization_id=organization_id)
    found: TrustedDevice | None = (
        rows.select_for_update().filter(pk=key, user_id=user_id, expires_at__gt=now).first()
    )
    return found


def _is_current(proof: str, device: TrustedDevice, now: datetime) -> bool:
    is_newest = _is_proof(proof, device, device.generation)
    return is_newest or _is_former(proof, device, now)


def _is_former(proof: str, device: TrustedDevice, now: datetime) -> bool:
    return device.is_in_grace(now) and _is_proof(proof, device, device.generation - 1)


def _holds(device: TrustedDevice, proof: str, now: datetime) -> bool:
    if _is_proof(proof, device, device.generation):
        device.generation += 1
        device.rotated_at = device.last_used_at = now
        device.failures = 0
        device.save(update_fields=["generation", "rotated_at", "last_used_at", "failures"])
        return True
    return _is_former(proof, device, now)


def _count_failure(device: TrustedDevice) -> None:
    if device.failures + 1 >= MAX_FAILURES:
        device.delete()
        return
    rows = TrustedDevice.objects.filter(pk=device.pk)
    rows.update(failures=F("failures") + 1)


def remove(user_id: UUID, organization_id: int, device_id: str) -> None:
    """Delete one device. Raises DeviceNotFound (404), also for another user's device."""
    try:
        key = UUID(device_id)
    except ValueError:
        raise DeviceNotFound from None
    rows = TrustedDevice.objects.filter(organization_id=organization_id)
    if not rows.filter(pk=key, user_id=user_id).delete()[0]:
        raise DeviceNotFound


def delete_all(user_id: UUID) -> int:
    """Delete every device of a user whose password or factors have changed; return their number.

    Sessions that such a device opened continue with the assurance of the password alone.
    """
    _end_trust(Session.objects.filter(user_id=user_id))
    mine = TrustedDevice.objects.filter(user_id=user_id)
    return mine.delete()[0]


def delete_all_within(organization_id: int) -> None:
    """Delete every device of an organization whose policy has changed."""
    _end_trust(Session.objects.filter(organization_id=organization_id))
    TrustedDevice.objects.filter(organization_id=organization_id).delete()


def count_within(organization_id: int) -> int:
    """Return how many devices the members of an organization trust."""
    return TrustedDevice.objects.filter(organization_id=organization_id).count()


def _end_trust(sessions: QuerySet[Session]) -> None:
    trusting = sessions.filter(ended_at=None, amr__contains=[TRUSTED_DEVICE])
    trusting.update(amr=Func(F("amr"), Value(TRUSTED_DEVICE), function="array_remove"))
