"""A worker's endpoint: which URLs may be registered, and the proof of its node."""

import hmac
import ipaddress
import re
import secrets
from typing import Final
from urllib.parse import urlsplit

import orjson

from edgecache.brain.core.errors import Invalid
from edgecache.http.addresses import is_public, parse_address
from edgecache.protocol.fields import FieldError

LENGTH_LIMIT: Final = 255
HIGHEST_PORT: Final = 65_535
HOST: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?:\.(?!-)[a-z0-9-]{1,63})*\.?", re.ASCII)
LOCAL_NAMES: Final = ("localhost", ".localhost", ".local", ".internal", ".localdomain")
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
NONCE_BYTES: Final = 24


def normalize(text: object, *, is_trusted: bool, is_production: bool) -> str:
    """Return the normalized endpoint: ``scheme://host:port``, always with the port.

    is_trusted: the platform's own node, which may be on a private network. In production other
    nodes need https and a public address.
    Raises Invalid.
    """
    if not isinstance(text, str) or not 0 < len(text) <= LENGTH_LIMIT or not text.isascii():
        raise _wrong("must be a URL of at most 255 characters")
    scheme, host, port = _parts(text)
    if is_production and not is_trusted:
        if scheme != "https":
            raise _wrong("must start with https://")
        if not is_public_host(host):
            raise _wrong("must not be a loopback, link-local or private address")
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"


def is_public_host(host: str) -> bool:
    """True if a host name or address looks public; names are not resolved."""
    address = parse_address(host)
    if address is not None:
        return is_public(address)
    # Some resolvers read a name of digits as an address.
    last = host.rstrip(".").rpartition(".")[2]
    is_local = any(f".{host.rstrip('.')}".endswith(f".{n.lstrip('.')}") for n in LOCAL_NAMES)
    return "." in host and not is_local and not last.isdigit() and not last.startswith("0x")


def new_nonce() -> str:
    """Return a fresh nonce for ``GET /prove``."""
    return secrets.token_urlsafe(NONCE_BYTES)


def is_proof(answer: bytes, wanted: str) -> bool:
    """True if an endpoint's response, `{"proof": …}`, has the expected proof."""
    try:
        response = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return False
    given = response.get("proof") if isinstance(response, dict) else None
    return isinstance(given, str) and hmac.compare_digest(given.encode(), wanted.encode())


def _parts(text: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise _wrong("is not a URL") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise _wrong("must start with http:// or https://")
    if parts.username is not None or parts.path not in {"", "/"} or "?" in text or "#" in text:
        raise _wrong("must be scheme, host and port alone")
    if not _is_host(host) or port == 0:
        raise _wrong("must name a host, and a port from 1 to 65535")
    return parts.scheme, host, port or DEFAULT_PORTS[parts.scheme]


def _is_host(host: str) -> bool:
    if "%" in host:
        return False
    if ":" in host:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            return False
        return True
    return HOST.fullmatch(host) is not None


def _wrong(message: str) -> Invalid:
    return Invalid([FieldError("endpoint", message)])
