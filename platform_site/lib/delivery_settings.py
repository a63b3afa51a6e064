"""Settings of mail and SMS: which backend carries them, and what it is told.

Every backend gets a timeout here, so that none can be forgotten.
"""

import importlib.util
import re
from dataclasses import dataclass, field
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from platform_site.env import Env, SettingError

TIMEOUT_S: Final = 10
SMS_BACKENDS: Final = {
    "none": "",
    "console": "accounts.delivery.sms.console.send",
    "file": "accounts.delivery.sms.file.send",
    "twilio": "accounts.delivery.sms.twilio.send",
}
_SERVICE: Final = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Backend:
    """A dotted path, and the keyword arguments that it is called with; '' is none configured."""

    path: str
    options: dict[str, Any] = field(default_factory=dict)


def mail_backend(env: Env) -> Backend:
    """Give the mail backend that ZMAIL_URL names: a Django one, ours or django-anymail's.

    Raises SettingError.
    """
    url = urlsplit(
        env.url(
            "ZMAIL_URL",
            "console:",
            help_text="How mail leaves: `console:`, `file:///folder`, "
            "`smtp://user:password@host:587` (STARTTLS; `?tls=none` for a relay without it), "
            "`smtps://user:password@host:465`, or a mail service by django-anymail: "
            "`anymail:postmark?server_token=…`, `anymail:mailgun?api_key=…&sender_domain=…`.",
            schemes=("console", "file", "smtp", "smtps", "anymail"),
        )
    )
    if url.scheme == "console":
        return Backend("accounts.delivery.console.EmailBackend")
    if url.scheme == "file":
        return _mail_folder(url)
    return _mail_service(url) if url.scheme == "anymail" else _smtp(url)


def mail_sender(env: Env) -> str:
    """Give ZMAIL_FROM, the sender of every mail.

    Raises SettingError.
    """
    sender = env.text(
        "ZMAIL_FROM", "Zonal <zonal@localhost>", help_text="Sender of mail: `Name <address>`."
    )
    if not sender.isprintable() or "@" not in parseaddr(sender)[1]:
        raise SettingError("ZMAIL_FROM", "must be an address, or `Name <address>`.")
    return sender


def sms_backend(env: Env, data_dir: Path, *, is_production: bool) -> Backend:
    """Give the SMS backend that ZSMS_BACKEND names.

    Raises SettingError, also for a backend that lacks a setting of its own.
    """
    name = env.choice(
        "ZSMS_BACKEND",
        "none" if is_production else "console",
        tuple(SMS_BACKENDS),
        help_text="How text messages leave; with none, SMS is no second factor. "
        "The default in production is none.",
    )
    folder = env.text(
        "ZSMS_FOLDER",
        help_text="Folder that ZSMS_BACKEND=file writes to, one JSON line a message.",
        shown="ZDATA_DIR/sms",
    )
    twilio = _twilio(env, is_chosen=name == "twilio")
    options: dict[str, dict[str, Any]] = {
        "file": {"folder": Path(folder) if folder else data_dir / "sms"},
        "twilio": twilio,
    }
    return Backend(SMS_BACKENDS[name], options.get(name, {}))


def _mail_folder(url: SplitResult) -> Backend:
    if url.netloc or not url.path.startswith("/"):
        raise SettingError("ZMAIL_URL", "must name an absolute folder: file:///folder.")
    path = "django.core.mail.backends.filebased.EmailBackend"
    return Backend(path, {"file_path": unquote(url.path)})


def _smtp(url: SplitResult) -> Backend:
    try:
        port = url.port
    except ValueError as exc:
        raise SettingError("ZMAIL_URL", "has a port that is no number from 1 to 65535.") from exc
    if not url.hostname:
        raise SettingError("ZMAIL_URL", "must name a host: smtp://host:587.")
    is_tls = url.scheme == "smtps"
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    tls = query.pop("tls", "starttls")
    if query or tls not in {"starttls", "none"} or (is_tls and url.query):
        raise SettingError("ZMAIL_URL", "takes only ?tls=starttls or ?tls=none, and on smtp://.")
    options = {
        "host": url.hostname,
        "port": port or (465 if is_tls else 587),
        "username": unquote(url.username or ""),
        "password": unquote(url.password or ""),
        "use_ssl": is_tls,
        "use_tls": not is_tls and tls == "starttls",
        "timeout": TIMEOUT_S,
    }
    return Backend("django.core.mail.backends.smtp.EmailBackend", options)


def _mail_service(url: SplitResult) -> Backend:
    module = f"anymail.backends.{url.path}"
    if not _SERVICE.fullmatch(url.path) or importlib.util.find_spec(module) is None:
        raise SettingError("ZMAIL_URL", "names no mail service that django-anymail knows.")
    # The backends take their settings as keyword arguments, under the documented names.
    options: dict[str, Any] = dict(parse_qsl(url.query))
    return Backend(f"{module}.EmailBackend", options | {"requests_timeout": TIMEOUT_S})


def _twilio(env: Env, *, is_chosen: bool) -> dict[str, Any]:
    account = env.text("ZTWILIO_ACCOUNT_SID", help_text="Twilio's account id, `AC…`.")
    auth_token = env.secret(
        "ZTWILIO_AUTH_TOKEN", help_text="Twilio's auth token; an API key is better.", min_chars=16
    )
    key = env.text("ZTWILIO_API_KEY", help_text="Twilio's API key id, `SK…`.")
    key_secret = env.secret(
        "ZTWILIO_API_SECRET", help_text="The secret of ZTWILIO_API_KEY.", min_chars=16
    )
    sender = env.text(
        "ZTWILIO_FROM",
        help_text="Sender of text messages: a number, a name, or a messaging service's id `MG…`.",
    )
    base_url = env.url(
        "ZTWILIO_BASE_URL",
        "https://api.twilio.com",
        help_text="Where Twilio's API is, for its other regions.",
        schemes=("https", "http"),
    )
    needed = {
        "ZTWILIO_ACCOUNT_SID": account,
        "ZTWILIO_FROM": sender,
        "ZTWILIO_API_SECRET" if key else "ZTWILIO_AUTH_TOKEN": key_secret if key else auth_token,
    }
    for name, value in needed.items():
        if is_chosen and not value:
            raise SettingError(name, "is needed by ZSMS_BACKEND=twilio.")
    return {
        "account": account,
        "username": key or account,
        "password": key_secret if key else auth_token,
        "sender": sender,
        "base_url": base_url.rstrip("/"),
        "timeout_s": TIMEOUT_S,
    }
