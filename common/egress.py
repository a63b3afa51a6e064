"""Requests to hosts that tenants choose: the addresses that are allowed, and HTTP requests to them.

A name is resolved once, all its addresses are checked, and the connection goes to one of them:
resolving the name again could return another one. Redirects are not followed, and no body is read:
only the status matters.
"""

import ipaddress
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpcore

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
WEB_PORTS: Final = frozenset({80, 443})
FIRST_FREE_PORT: Final = 1024
# Source: IANA's registries of special-purpose addresses, plus multicast and reserved ones.
REFUSED_V4: Final = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Only global unicast is allowed, so mapped, compatible, NAT64, local and multicast addresses need
# no entry; within it, networks that embed IPv4 addresses or are not routed are refused.
GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
REFUSED_V6: Final = tuple(
    ipaddress.IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
# Cloud metadata services: refused even if private addresses are allowed.
LINK_LOCAL: Final = (
    ipaddress.IPv4Network("169.254.0.0/16"),
    ipaddress.IPv6Network("fe80::/10"),
    ipaddress.IPv6Network("::ffff:169.254.0.0/112"),
)
# Time limit of one request with all its steps, also for a server that sends byte by byte.
TIMEOUT_S: Final = 10.0
LOOK_UP_S: Final = 5.0
# A DNS lookup that hangs keeps its thread until the resolver gives up. So lookups are limited, in
# total and per organization, so that one organization's names do not block others.
LOOK_UPS: Final = 64
LOOK_UPS_OF_ONE: Final = 4
# Maximum size of a response's head, including interim responses.
HEAD_LIMIT_BYTES: Final = 32 * 1024
URL_CHARS: Final = 2048
TRUST: Final = ssl.create_default_context()


def is_port_allowed(port: int, *, allows_private: bool) -> bool:
    """True for the ports of HTTP and HTTPS, and for ports above the system services."""
    return allows_private or port in WEB_PORTS or port >= FIRST_FREE_PORT


def is_allowed(address: Address, *, allows_private: bool, refused: Sequence[Network] = ()) -> bool:
    """True if a tenant's name may resolve to this address.

    allows_private: allow loopback and private addresses, for development and tests. refused:
    further networks that the installation refuses.
    """
    if _is_in(address, LINK_LOCAL) or _is_in(address, refused):
        return False
    if allows_private:
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return not _is_in(address, REFUSED_V4)
    return address in GLOBAL_V6 and not _is_in(address, REFUSED_V6)


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


class RequestRefused(Exception):
    """A request that was not sent or not answered; ``code`` is a short code of the platform."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The result of a request. status: None without a response; error: '' with a response."""

    status: int | None
    error: str
    elapsed_ms: int


class _Lookups:
    """The DNS lookups in progress, by organization."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._by_owner: Counter[int] = Counter()

    def take(self, owner: int) -> bool:
        """Count one more lookup; False if there are too many."""
        with self._guard:
            is_free = self._by_owner.total() < LOOK_UPS and self._by_owner[owner] < LOOK_UPS_OF_ONE
            if is_free:
                self._by_owner[owner] += 1
            return is_free

    def give_back(self, owner: int) -> None:
        """Count one lookup less."""
        with self._guard:
            self._by_owner[owner] -= 1
            # Removes counters of zero, so that the dict does not grow with each organization.
            self._by_owner += Counter()


_LOOKUPS: Final = _Lookups()


def url_fault(url: str, *, is_production: bool) -> str:
    """Return a sentence why a URL cannot be used; '' for a valid one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "This is not a URL."
    if not url.isascii() or not url.isprintable() or " " in url or not host:
        return "A URL with a host, in ASCII: write other letters as punycode or percent codes."
    if parts.scheme not in ({"https"} if is_production else {"https", "http"}):
        return "A URL that begins with https://."
    if "@" in parts.netloc or parts.fragment:
        return "A URL without a user, a password or a fragment."
    if not is_port_allowed(port or 443, allows_private=not is_production):
        return "The port has to be 443, 80, or from 1024 on."
    return "" if _may_be_reached(host, is_production) else "The address is not a public one."


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, owner: int, is_production: bool
) -> WebhookAnswer:
    """Send a message; return the status or an error. Never raises.

    owner: the organization's id.
    """
    started = time.monotonic()
    status, error = None, ""
    try:
        backend = _CheckedBackend(owner, started + TIMEOUT_S, allows_private=not is_production)
        status = _status_of(url, body, headers, backend)
    except RequestRefused as exc:
        error = exc.code
    except (httpcore.TimeoutException, TimeoutError):
        error = "timeout"
    except (httpcore.ConnectError, OSError) as exc:
        error = "tls_failed" if isinstance(exc.__context__, ssl.SSLError) else "not_reached"
    except Exception:  # noqa: BLE001 - a server can make the parser raise anything
        error = "answer_malformed"
    return WebhookAnswer(status, error, int((time.monotonic() - started) * 1000))


def _status_of(
    url: str, body: bytes, headers: Mapping[str, str], backend: "_CheckedBackend"
) -> int:
    if url_fault(url, is_production=not backend.allows_private):
        # The URL was valid when it was added, for example before this was production.
        raise RequestRefused("url_refused")
    with (
        httpcore.ConnectionPool(ssl_context=TRUST, network_backend=backend) as pool,
        pool.stream("POST", url, headers=[*headers.items()], content=body) as response,
    ):
        return response.status


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects for httpcore; TLS still checks the certificate against the name."""

    def __init__(self, owner: int, ends_at: float, *, allows_private: bool) -> None:
        self._owner = owner
        self._ends_at = ends_at
        self.allows_private = allows_private
        self._dialler = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first checked address that answers."""
        failure: Exception = RequestRefused("name_not_resolved")
        for address in self._addresses(host, port):
            try:
                stream = self._dialler.connect_tcp(address, port, _left(self._ends_at))
                return _BoundedStream(stream, self._ends_at)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                failure = exc
        raise failure

    def _addresses(self, host: str, port: int) -> list[str]:
        found = _look_up(host, port, self._owner)
        for text in found:
            address = ipaddress.ip_address(text)
            if not is_allowed(address, allows_private=self.allows_private):
                raise RequestRefused("address_refused")
        return found


class _BoundedStream(httpcore.NetworkStream):
    """A stream with a deadline, that reads no more than a response's head."""

    def __init__(self, stream: httpcore.NetworkStream, ends_at: float) -> None:
        self._stream = stream
        self._ends_at = ends_at
        self._read_bytes = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read some bytes; raises RequestRefused beyond the limit."""
        data = self._stream.read(min(max_bytes, HEAD_LIMIT_BYTES), _left(self._ends_at))
        self._read_bytes += len(data)
        if self._read_bytes > HEAD_LIMIT_BYTES:
            raise RequestRefused("answer_too_long")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write bytes of the request."""
        self._stream.write(buffer, _left(self._ends_at))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Return this stream over TLS."""
        try:
            secured = self._stream.start_tls(ssl_context, server_hostname, _left(self._ends_at))
        except httpcore.ConnectError as exc:
            raise RequestRefused("tls_failed") from exc
        return _BoundedStream(secured, self._ends_at)

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore knows of the connection."""
        return self._stream.get_extra_info(info)


def _left(ends_at: float) -> float:
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _may_be_reached(host: str, is_production: bool) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return True
    return is_allowed(address, allows_private=not is_production)


def _look_up(host: str, port: int, owner: int) -> list[str]:
    """Resolve a name in its own thread, which is abandoned if the lookup hangs."""
    if not _LOOKUPS.take(owner):
        raise RequestRefused("name_not_resolved")
    response: Future[list[str]] = Future()

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            # Only link-local addresses have a scope (fe80::1%eth0), and these are refused.
            found = dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows)
            response.set_result([*found])
        except (OSError, UnicodeError) as exc:
            response.set_exception(exc)
        finally:
            _LOOKUPS.give_back(owner)

    threading.Thread(target=ask, name="webhook-names", daemon=True).start()
    try:
        return response.result(LOOK_UP_S)
    except (OSError, UnicodeError, TimeoutError) as exc:
        raise RequestRefused("name_not_resolved") from exc
