"""Settings of where the service is reached from outside."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from platform_site.env import Env, SettingError

FEATURES: Final = ("cache",)


def features(env: Env) -> tuple[str, ...]:
    """Give ZFEATURES: the optional parts that are compiled in.

    Raises SettingError for one that does not exist.
    """
    given = env.words(
        "ZFEATURES",
        FEATURES,
        help_text="Optional parts of the platform; without `cache` the edge cache's routes are "
        "404. `none` is no part at all.",
    )
    chosen = tuple(word for word in given if word != "none")
    for word in chosen:
        if word not in FEATURES:
            raise SettingError("ZFEATURES", f"may hold {', '.join(FEATURES)}, not {word!r}.")
    return chosen


def public_url(env: Env, hosts: Sequence[str], *, port: int, is_production: bool) -> str:
    """Give ZPUBLIC_URL, the origin that links in mails begin with, without a slash at its end.

    hosts: the names this service answers to, for the default in production.
    Raises SettingError for anything but an origin: a mail's links must not lead elsewhere.
    """
    value = env.url(
        "ZPUBLIC_URL",
        help_text="Where people reach this service, as `https://app.example.com`: links in mails "
        "begin with it. Required in production; unset elsewhere, `http://localhost:PORT`.",
        schemes=("https", "http"),
    )
    if value:
        return _origin(value)
    named = [host for host in hosts if host.strip("*.") == host and host]
    if is_production and named:
        return f"https://{named[0]}"
    return f"http://localhost:{port}"


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url.lower())
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    is_bare = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if not (host and is_bare and url.isascii() and url.isprintable() and " " not in url):
        raise SettingError(
            "ZPUBLIC_URL", "must be an origin like https://app.example.com, without a path."
        )
    return f"{parts.scheme}://{parts.netloc}"
