"""Settings of mail and SMS: which backend sends them, and with what options; limits of webhooks.

Every backend gets a timeout here, so that none can be forgotten.
"""

import importlib.util
import re
from dataclasses import dataclass, field
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from common.settings.env import Env, SettingError
from common.settings.table import (
    choice,
    integer,
    load,
    secret,
    text,
    url,
)

TIMEOUT_S: Final = 10
DEVELOPMENT_BACKEND: Final = "outbox.messages.development.EmailBackend"
FILE_BACKEND: Final = "django.core.mail.backends.filebased.EmailBackend"
# Their mail stays on this machine.
LOCAL_MAIL_BACKENDS: Final = frozenset({DEVELOPMENT_BACKEND, FILE_BACKEND})
SMS_BACKENDS: Final = {
    "none": "",
    "console": "outbox.messages.sms.console.send",
    "file": "outbox.messages.sms.file.send",
    "twilio": "outbox.messages.sms.twilio.send",
}
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
    if url.netloc or not url.path.startswith("/"):
        raise ValueError("must name an absolute folder: file:///folder.")
    return Backend(FILE_BACKEND, {"file_path": unquote(url.path)})


def _smtp(url: SplitResult) -> Backend:
    try:
        port = url.port
    except ValueError as exc:
        raise ValueError("has a port that is not a number from 1 to 65535.") from exc
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
        "port": port or (465 if is_tls else 587),
        "username": unquote(url.username or ""),
        "password": unquote(url.password or ""),
        "use_ssl": is_tls,
        "use_tls": not is_tls and tls == "starttls",
        "timeout": TIMEOUT_S,
    }
    return Backend("outbox.messages.mail.EmailBackend", options)


def _mail_service(url: SplitResult) -> Backend:
    module = f"anymail.backends.{url.path}"
    if not _SERVICE.fullmatch(url.path) or importlib.util.find_spec(module) is None:
        raise ValueError("names no mail service that django-anymail knows.")
    # The backends take their settings as keyword arguments, under the documented names.
    options: dict[str, Any] = dict(parse_qsl(url.query))
    return Backend(f"{module}.EmailBackend", options | {"requests_timeout": TIMEOUT_S})


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
    """How text messages are sent. backend: '' for the default."""

    backend: str = choice(
        "ZSMS_BACKEND",
        "How text messages are sent; without it, SMS is not a second factor. "
        "The default in production is none.",
        options=tuple(SMS_BACKENDS),
        shown="console",
    )
    folder: str = text(
        "ZSMS_FOLDER",
        "Folder that ZSMS_BACKEND=file writes to, one JSON line a message.",
        shown="ZDATA_DIR/sms",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TwilioSettings:
    """The account that ZSMS_BACKEND=twilio sends with."""

    account: str = text("ZTWILIO_ACCOUNT_SID", "Twilio's account id, `AC…`.")
    auth_token: str = secret(
        "ZTWILIO_AUTH_TOKEN", "Twilio's auth token; an API key is better.", min_chars=16
    )
    key: str = text("ZTWILIO_API_KEY", "Twilio's API key id, `SK…`.")
    key_secret: str = secret("ZTWILIO_API_SECRET", "The secret of ZTWILIO_API_KEY.", min_chars=16)
    sender: str = text(
        "ZTWILIO_FROM",
        "Sender of text messages: a number, a name, or a messaging service's id `MG…`.",
    )
    base_url: str = url(
        "ZTWILIO_BASE_URL",
        "Where Twilio's API is, for its other regions.",
        default="https://api.twilio.com",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """The limits of webhooks."""

    per_organization: int = integer(
        "ZWEBHOOKS_PER_ORGANIZATION",
        "Webhook endpoints that one organization may have.",
        default=20,
        minimum=1,
        maximum=1000,
    )
    queue_limit: int = integer(
        "ZWEBHOOK_QUEUE_LIMIT",
        "Events that wait for one webhook at most; for each further one the oldest is dropped, "
        "and listed as failed with queue_full.",
        default=2000,
        minimum=1,
    )
    disable_days: int = integer(
        "ZWEBHOOK_DISABLE_DAYS",
        "Days without a successful delivery after which a webhook is disabled.",
        default=3,
        unit="days",
        minimum=1,
        maximum=365,
    )


TABLES: Final = (MailSettings, SmsSettings, TwilioSettings, WebhookSettings)


def sms_backend(env: Env, data_dir: Path, *, is_production: bool) -> Backend:
    """Return the SMS backend that ZSMS_BACKEND names.

    Raises SettingError, also for a backend that lacks one of its settings.
    """
    given = load(SmsSettings, env)
    name = given.backend or ("none" if is_production else "console")
    twilio = _twilio(load(TwilioSettings, env), is_chosen=name == "twilio")
    options: dict[str, dict[str, Any]] = {
        "file": {"folder": Path(given.folder) if given.folder else data_dir / "sms"},
        "twilio": twilio,
    }
    return Backend(SMS_BACKENDS[name], options.get(name, {}))


def _twilio(given: TwilioSettings, *, is_chosen: bool) -> dict[str, Any]:
    secret = given.key_secret if given.key else given.auth_token
    needed = {
        "ZTWILIO_ACCOUNT_SID": given.account,
        "ZTWILIO_FROM": given.sender,
        "ZTWILIO_API_SECRET" if given.key else "ZTWILIO_AUTH_TOKEN": secret,
    }
    for name, value in needed.items():
        if is_chosen and not value:
            raise SettingError(name, "is needed by ZSMS_BACKEND=twilio.")
    return {
        "account": given.account,
        "username": given.key or given.account,
        "password": secret,
        "sender": given.sender,
        "base_url": given.base_url.rstrip("/"),
        "timeout_s": TIMEOUT_S,
    }
