"""The platform's URL."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def checked(url: str, *, allow_http: bool) -> str:
    """Return a URL that tokens may be sent to.

    Raises ValueError for one that is none, or that would carry them in clear over a network.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url!r} is no URL of a platform, such as https://zonal.example.com.")
    if parts.username or parts.query or parts.fragment:
        raise ValueError("The platform's URL has no user, query or fragment.")
    if parts.scheme == "http" and not allow_http and not _is_loopback(parts.hostname):
        raise ValueError(
            f"http://{parts.hostname} would carry tokens in clear: use https, or allow_http=True."
        )
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
