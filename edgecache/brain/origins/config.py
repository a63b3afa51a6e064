"""An origin's configuration. Nothing is taken from the machine's environment.

Configuration (kept in clear) and secret (kept encrypted), each a flat JSON object:

====== ============================================== =======================================
kind   config                                         secret, or none for anonymous access
====== ============================================== =======================================
s3     bucket, region, endpoint, addressing           access_key_id, secret_access_key,
                                                      session_token
gcs    bucket, endpoint                               access_key_id, secret_access_key (HMAC)
http   url                                            authorization (the header's value)
====== ============================================== =======================================
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from edgecache.brain.core.errors import Invalid
from edgecache.protocol.fields import FieldError
from edgecache.protocol.resources import CONFIG_CHARS, SECRET_CHARS, OriginKind, OriginOptions

BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}[A-Za-z0-9]")
REGION: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
PORT_DIGITS: Final = 5
ADDRESSING: Final = re.compile(r"path|virtual")


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One field: its format, and whether it is required."""

    form: re.Pattern[str] | None
    is_required: bool = False
    limit: int = CONFIG_CHARS


CONFIG: Final[dict[str, dict[str, ConfigField]]] = {
    "s3": {
        "bucket": ConfigField(BUCKET, is_required=True),
        "region": ConfigField(REGION, is_required=True),
        "endpoint": ConfigField(None),
        "addressing": ConfigField(ADDRESSING),
    },
    "gcs": {"bucket": ConfigField(BUCKET, is_required=True), "endpoint": ConfigField(None)},
    "http": {"url": ConfigField(None, is_required=True)},
}
KEY_PAIR: Final = {
    "access_key_id": ConfigField(VISIBLE, is_required=True),
    "secret_access_key": ConfigField(VISIBLE, is_required=True),
}
SECRET: Final[dict[str, dict[str, ConfigField]]] = {
    "s3": {**KEY_PAIR, "session_token": ConfigField(VISIBLE, limit=SECRET_CHARS)},
    "gcs": KEY_PAIR,
    "http": {"authorization": ConfigField(HEADER_VALUE, is_required=True)},
}
URLS: Final = frozenset({"endpoint", "url"})


@dataclass(frozen=True, slots=True)
class OriginConfig:
    """A valid configuration. secret: empty means anonymous, never the machine's identity."""

    kind: OriginKind
    config: Mapping[str, str]
    secret: Mapping[str, str]


def parse(
    kind: str,
    config: Mapping[str, Any],
    secret: Mapping[str, Any] | None,
    *,
    allows_private: bool = False,
) -> OriginConfig:
    """Return the description from the fields of a request.

    allows_private: allow plain HTTP and local addresses, for development and tests.

    Raises Invalid with the fields.
    """
    if kind not in CONFIG:
        raise Invalid([FieldError("kind", f"must be one of {', '.join(CONFIG)}.", "unknown")])
    errors: list[FieldError] = []
    given = _fields("config", CONFIG[kind], config, errors)
    kept = _fields("secret", SECRET[kind], secret, errors) if secret else {}
    is_plain_allowed = allows_private or kind == "http"
    for name in URLS & given.keys():
        wrong = _wrong_url(given[name], is_plain_allowed=is_plain_allowed)
        if wrong:
            errors.append(FieldError(f"config.{name}", wrong, "url"))
    if errors:
        raise Invalid(errors)
    return OriginConfig(kind, given, kept)  # type: ignore[arg-type]  # one of CONFIG's keys


def check_options(kind: str, options: OriginOptions) -> None:
    """Raise Invalid for an option that the kind does not have, or that is none."""
    if not options.host:
        return
    if kind != "http":
        sentence = "belongs to HTTP origins: a signature covers the host of others."
        raise Invalid([FieldError("host", sentence)])
    name, _, port = options.host.partition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= PORT_DIGITS
    if not HOST.fullmatch(name) or not (is_port or options.host == name):
        raise Invalid([FieldError("host", "must be a host name, with a port if it has one.")])


def _fields(
    part: str, known: dict[str, ConfigField], given: Mapping[str, Any], errors: list[FieldError]
) -> dict[str, str]:
    found: dict[str, str] = {}
    errors += (
        FieldError(f"{part}.{name}", "is not known here.", "unknown")
        for name in given
        if name not in known
    )
    for name, field in known.items():
        value = given.get(name, "")
        if value == "" and field.is_required:
            errors.append(FieldError(f"{part}.{name}", "has to be given.", "required"))
        elif value == "":
            continue
        elif not isinstance(value, str) or len(value) > field.limit:
            errors.append(FieldError(f"{part}.{name}", "must be a text of usual length."))
        elif field.form is not None and not field.form.fullmatch(value):
            errors.append(FieldError(f"{part}.{name}", "does not look like one."))
        else:
            found[name] = value
    return found


def _wrong_url(text: str, *, is_plain_allowed: bool) -> str:
    """Return what is wrong with a URL, or ''."""
    schemes = ("https", "http") if is_plain_allowed else ("https",)
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return "is not a URL."
    if not VISIBLE.fullmatch(text):
        return "may hold visible ASCII alone."
    if parts.scheme not in schemes:
        return f"must begin with {' or '.join(scheme + '://' for scheme in schemes)}."
    if parts.username is not None or "?" in text or "#" in text:
        return "may hold no user, query or fragment."
    return "" if _is_host(parts) else "has no host name that is one."


def _is_host(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return HOST.fullmatch(host) is not None
    return True
