"""Deployment checks: settings that are acceptable in development but not in production."""

import os
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from accounts.signin import signin
from common.settings.env import Env
from outbox.conf import LOCAL_MAIL_BACKENDS

# Settings that must be given: a value generated at start would differ in every process. Those of
# runtime.env are development's.
REQUIRED: Final = (
    ("SECRET_KEY", "zonal.E001"),
    ("ZSECRET_KEYS", "zonal.E002"),
    ("ZJWT_SECRET", "zonal.E003"),
    ("ZJWT_REFRESH_SECRET", "zonal.E004"),
    ("ZMFA_SECRET", "zonal.E015"),
    ("DATABASE_URL", "zonal.E005"),
    ("ZSQL_CLUSTER_URL", "zonal.E006"),
    ("ZALLOWED_HOSTS", "zonal.E007"),
    ("ZPUBLIC_URL", "zonal.E016"),
    ("ZMAIL_URL", "zonal.E010"),
    ("ZMAIL_FROM", "zonal.E011"),
)


@checks.register(checks.Tags.security, deploy=True)
def production_settings(**_options: Any) -> list[checks.CheckMessage]:
    """Return an error for each setting that production requires and that is not set."""
    messages: list[checks.CheckMessage] = [
        checks.Error(f"{name} is not set.", hint="See docs/settings.md.", id=check_id)
        for name, check_id in REQUIRED
        if not Env(os.environ).raw(name)
    ]
    if not settings.IS_PRODUCTION:
        messages.append(checks.Error("PRODUCTION is not true.", id="zonal.E008"))
    if settings.ACCOUNTS.dev_secret:
        hint = "Development tokens are refused here all the same."
        messages.append(checks.Warning("ZAUTH_DEV_SECRET is set.", hint=hint, id="zonal.W001"))
    if "*" in settings.ALLOWED_HOSTS:
        messages.append(checks.Error("ZALLOWED_HOSTS accepts any host.", id="zonal.E009"))
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    if not validate_host(f"[{host}]" if ":" in host else host, settings.ALLOWED_HOSTS):
        hint = "Requests to it are refused, unless a proxy sends another Host."
        text = "The host of ZPUBLIC_URL is not among ZALLOWED_HOSTS."
        messages.append(checks.Warning(text, hint=hint, id="zonal.W004"))
    if settings.SECURE_SSL_REDIRECT and not settings.TRUSTED_PROXIES:
        hint = "Name the addresses or networks of your own proxies; the first one does TLS."
        text = "ZTRUSTED_PROXIES is not set: no request counts as https, and each is redirected."
        messages.append(checks.Warning(text, hint=hint, id="zonal.W005"))
    if settings.PUBLIC_URL.startswith("http:"):
        messages.append(checks.Error("ZPUBLIC_URL is not https.", id="zonal.E017"))
    return messages


@checks.register("settings")
def unknown_settings(**_options: Any) -> list[checks.CheckMessage]:
    """Warn of each name that looks like a setting and is none: what it should set is not set."""
    hint = "See docs/settings.md, or remove it."
    return [
        checks.Warning(unknown.sentence(), hint=hint, id="zonal.W003")
        for unknown in settings.UNKNOWN_SETTINGS
    ]


@checks.register(checks.Tags.security)
def sign_in_stages(**_options: Any) -> list[checks.CheckMessage]:
    """Refuse an installation without stages: a password alone would open sessions."""
    if signin.STAGES:
        return []
    hint = "The app twofactor adds its own; it must be in INSTALLED_APPS."
    return [checks.Error("Sign-in asks for no second factor.", hint=hint, id="zonal.E020")]


@checks.register(checks.Tags.security, deploy=True)
def production_delivery(**_options: Any) -> list[checks.CheckMessage]:
    """Refuse mail and SMS backends whose messages other users of this machine could read."""
    messages: list[checks.CheckMessage] = []
    mail = settings.MAIL_OPTIONS
    if settings.EMAIL_BACKEND in LOCAL_MAIL_BACKENDS:
        messages.append(checks.Error("ZMAIL_URL shows mail here.", id="zonal.E012"))
    if settings.SMS_BACKEND.rpartition(".")[0].endswith((".console", ".file")):
        messages.append(checks.Error("ZSMS_URL shows messages here.", id="zonal.E013"))
    is_clear = "host" in mail and not (mail["use_tls"] or mail["use_ssl"])
    if is_clear and mail["host"] not in {"localhost", "127.0.0.1", "::1"}:
        messages.append(checks.Warning("ZMAIL_URL sends mail in clear.", id="zonal.W002"))
    return messages
