"""The origins where passkeys may be created and used: configured ones only, not the request's.

The RP ID of a passkey is the host of an origin, or a parent of it that is listed as well
(WebAuthn L3 §5.1.3, "registrable domain suffix").
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.conf import settings

from common.errors import InvalidRequest
from twofactor.errors import ChannelUnavailable


def default_rp_id() -> str:
    """Return ZWEBAUTHN_RP_ID, else the host of the first origin.

    Raises ChannelUnavailable (503) if no origin is configured.
    """
    if not settings.TWOFACTOR.webauthn_origins:
        raise ChannelUnavailable("No origin is configured for passkeys here.")
    return settings.TWOFACTOR.webauthn_rp_id or _host(settings.TWOFACTOR.webauthn_origins[0])


def origins_of(rp_id: str) -> list[str]:
    """Return the origins for passkeys of an RP ID; none if the RP ID is not allowed."""
    known = {_host(origin) for origin in settings.TWOFACTOR.webauthn_origins} | {
        settings.TWOFACTOR.webauthn_rp_id
    }
    if rp_id not in known:
        return []
    return [origin for origin in settings.TWOFACTOR.webauthn_origins if _fits(origin, rp_id)]


def rp_id_of(wanted: str) -> str:
    """Return the requested RP ID, or the default.

    Raises InvalidRequest (400) naming ``rp_id`` if it is not allowed, ChannelUnavailable (503).
    """
    rp_id = wanted.lower() or default_rp_id()
    if not origins_of(rp_id):
        raise InvalidRequest.for_field("rp_id", "Not allowed here.", code="not_allowed")
    return rp_id


def choose(wanted_rp_id: str, wanted_origin: str) -> tuple[str, list[str]]:
    """Return the RP ID of a registration and the origins it may come from.

    Without an origin, all origins of the RP ID are allowed; without an RP ID, it is the default if
    it fits the origin, else the origin's host.
    Raises InvalidRequest (400) naming ``rp_origin`` or ``rp_id``, ChannelUnavailable (503).
    """
    if not wanted_origin:
        rp_id = rp_id_of(wanted_rp_id)
        return rp_id, origins_of(rp_id)
    origin = wanted_origin.lower().removesuffix("/")
    if origin not in settings.TWOFACTOR.webauthn_origins:
        raise InvalidRequest.for_field("rp_origin", "Not allowed here.", code="not_allowed")
    if not wanted_rp_id:
        rp_id = default_rp_id()
        return (rp_id if _fits(origin, rp_id) else _host(origin)), [origin]
    rp_id = rp_id_of(wanted_rp_id)
    if not _fits(origin, rp_id):
        raise InvalidRequest.for_field("rp_id", "It does not fit the origin.", code="not_allowed")
    return rp_id, [origin]


def common_rp_id(registered: Iterable[str]) -> str:
    """Return the RP ID for a user's passkeys: the default, else the first usable one.

    registered: the passkeys' RP IDs, the preferred first. A request to a browser has only one.
    Raises ChannelUnavailable (503) if none of them is allowed any more.
    """
    usable = [rp_id for rp_id in registered if origins_of(rp_id)]
    if not usable:
        raise ChannelUnavailable("None of the passkeys belongs to an origin of this place.")
    return default_rp_id() if default_rp_id() in usable else usable[0]


def _host(origin: str) -> str:
    return urlsplit(origin).hostname or ""


def _fits(origin: str, rp_id: str) -> bool:
    host = _host(origin)
    return host == rp_id or host.endswith(f".{rp_id}")
