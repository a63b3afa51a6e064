"""Settings of mail and SMS: which backend sends them, and with what options.

Every backend gets a timeout here, so that none can be forgotten.
"""

import importlib.util
import re
from dataclasses import dataclass, field
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from common.settings.env import Env
from common.settings.table import (
    load,
    text,
    url,
)

TIMEOUT_S: Final = 10
DEVELOPMENT_BACKEND: Final = "outbox.messages.development.EmailBackend"
FILE_BACKEND: Final = "django.core.mail.backends.filebased.EmailBackend"
# Their mail stays on this machine.
LOCAL_MAIL_BACKENDS: Final = frozenset({DEVELOPMENT_BACKEND, FILE_BACKEND})
SMS_CONSOLE: Final = "outbox.messages.sms.console.send"
SMS_FILE: Final = "outbox.messages.sms.file.send"
SMS_TWILIO: Final = "outbox.messages.sms.twilio.send"
_SERVICE: Final = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Backend:
    """A dotted path, and the keyword arguments that it is called with; '' is none configured."""

    path: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)


def _mail_backend(text: str) -> Backend:
    url = urlsplit(text)
    if url.scheme == "console":
        return Backend(DEVELOPMENT_BACKEND)
    if url.scheme == "file":
        return _mail_folder(url)
    return _mail_service(url) if url.scheme == "anymail" else _smtp(url)


def _mail_folder(url: SplitResult) -> Backend:
    return Backend(FILE_BACKEND, {"file_path": _folder(url)})


def _folder(url: SplitResult) -> str:
    if url.netloc or not url.path.startswith("/"):
        raise ValueError("must name an absolute folder: file:///folder.")
    return unquote(url.path)


def _smtp(url: SplitResult) -> Backend:
    if not _is_port(url):
        raise ValueError("has a port that is not a number from 1 to 65535.")
    if not url.hostname or url.path.strip("/") or url.fragment:
        # Else a part of a password would be taken for the host, which errors name.
        raise ValueError(
            "must be like smtp://user:password@host:587; write /, ?, # and @ of a password as %2F, "
            "%3F, %23 and %40."
        )
    is_tls = url.scheme == "smtps"
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    tls = query.pop("tls", "starttls")
    if query or tls not in {"starttls", "none"} or (is_tls and url.query):
        raise ValueError("takes only ?tls=starttls or ?tls=none, and on smtp://.")
    options = {
        "host": url.hostname,
        "port": url.port or (465 if is_tls else 587),
        "username": unquote(url.username or ""),
        "password": unquote(url.password or ""),
        "use_ssl": is_tls,
        "use_tls": not is_tls and tls == "starttls",
        "timeout": TIMEOUT_S,
    }
    return Backend("outbox.messages.mail.EmailBackend", options)


def _is_port(url: SplitResult) -> bool:
    try:
        return url.port is None or url.port > 0
    except ValueError:
        return False


def _mail_service(url: SplitResult) -> Backend:
    module = f"anymail.backends.{url.path}"
    if not _SERVICE.fullmatch(url.path) or importlib.util.find_spec(module) is None:
        raise ValueError("names no mail service that django-anymail knows.")
    # The backends take their settings as keyword arguments, under the documented names.
    options: dict[str, Any] = dict(parse_qsl(url.query))
    return Backend(f"{module}.EmailBackend", options | {"requests_timeout": TIMEOUT_S})


def _sms_backend(text: str) -> Backend | None:
    if not text:
        return None
    url = urlsplit(text)
    if url.scheme == "twilio":
        return _twilio(url)
    if url.scheme == "file":
        return Backend(SMS_FILE, {"folder": Path(_folder(url))})
    if text not in {"none:", "console:"}:
        raise ValueError("must be none: or console: without anything behind.")
    return Backend(SMS_CONSOLE if url.scheme == "console" else "")


def _twilio(url: SplitResult) -> Backend:
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    parts = (url.username, url.password, url.hostname, url.path.strip("/"), query.pop("from", ""))
    if not all(parts) or query or url.fragment or not _is_port(url):
        raise ValueError(
            "must be like twilio://SID:SECRET@api.twilio.com/ACCOUNT?from=SENDER; write /, ?, # "
            "and @ of a secret as %2F, %3F, %23 and %40, and the + of a number as %2B."
        )
    username, password, _, account, sender = (unquote(str(part)) for part in parts)
    options = {
        "account": account,
        "username": username,
        "password": password,
        "sender": sender,
        "base_url": f"https://{url.netloc.rpartition('@')[2]}",
        "timeout_s": TIMEOUT_S,
    }
    return Backend(SMS_TWILIO, options)


def _sender(text: str) -> str:
    if not text.isprintable() or "@" not in parseaddr(text)[1]:
        raise ValueError("must be an address, or `Name <address>`.")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """How mail is sent, and its sender."""

    backend: Backend = url(
        "ZMAIL_URL",
        "How mail is sent: `console:`, `file:///folder`, "
        "`smtp://user:password@host:587` (STARTTLS; `?tls=none` for a relay without it), "
        "`smtps://user:password@host:465`, or a mail service by django-anymail: "
        "`anymail:postmark?server_token=…`, `anymail:mailgun?api_key=…&sender_domain=…`.",
        default="console:",
        schemes=("console", "file", "smtp", "smtps", "anymail"),
        parse=_mail_backend,
    )
    sender: str = text(
        "ZMAIL_FROM",
        "Sender of mail: `Name <address>`.",
        default="Zonal <zonal@localhost>",
        parse=_sender,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SmsSettings:
    """How text messages are sent. backend: None for the default."""

    backend: Backend | None = url(
        "ZSMS_URL",
        "How text messages are sent: `none:` (SMS is then not a second factor), `console:`, "
        "`file:///folder`, or `twilio://SID:SECRET@api.twilio.com/ACCOUNT?from=SENDER` with an API "
        "key (`SK…`, or the account's `AC…` and its auth token); the sender is a number "
        "(`%2B49…`), a name, or a messaging service's id `MG…`.",
        schemes=("none", "console", "file", "twilio"),
        shown="console:, in production none:",
        parse=_sms_backend,
    )


TABLES: Final = (MailSettings, SmsSettings)


def sms_backend(env: Env, *, is_production: bool) -> Backend:
    """Return the SMS backend that ZSMS_URL names, or the default. Raises SettingError."""
    default = Backend("") if is_production else Backend(SMS_CONSOLE)
    return load(SmsSettings, env).backend or default
