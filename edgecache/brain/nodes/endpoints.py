"""A worker's endpoint: which URLs may be registered, and the proof that its node is there.

The proof is a MAC under the node's secret. It is requested when a pending node's heartbeat arrives,
so that staff sees a proved endpoint.
"""

import hmac
import ipaddress
import re
import secrets
import time
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import orjson
import structlog

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable, Invalid
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.nodes import node_rows
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.http.addresses import is_public, parse_address
from edgecache.http.outgoing import RequestFailed
from edgecache.protocol.credentials import proof
from edgecache.protocol.fields import FieldError

log = structlog.get_logger(__name__)

LENGTH_LIMIT: Final = 255
HIGHEST_PORT: Final = 65_535
HOST: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?:\.(?!-)[a-z0-9-]{1,63})*\.?", re.ASCII)
LOCAL_NAMES: Final = ("localhost", ".localhost", ".local", ".internal", ".localdomain")
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
NONCE_BYTES: Final = 24

PROOF_AGAIN_AFTER_S: Final = 30.0


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


class EndpointProofs:
    """Requests proofs, at most twice a minute for each node, to be useless for attacks."""

    def __init__(self, coherence: Coherence, nodes: KnownNodes, client: WorkerClient) -> None:
        """Request nothing yet."""
        self._coherence = coherence
        self._nodes = nodes
        self._client = client
        self._asked_at: dict[UUID, float] = {}
        self._tasks = BackgroundTasks()

    async def stop(self) -> None:
        await self._tasks.stop()

    def ask_for(self, row: NodeRow) -> None:
        """Request a pending node's proof, unless it is proved or was asked a moment ago."""
        now = time.monotonic()
        if row.status != "pending" or row.proved_at is not None:
            return
        if now - self._asked_at.get(row.id, -PROOF_AGAIN_AFTER_S) < PROOF_AGAIN_AFTER_S:
            return
        self._asked_at = {
            k: at for k, at in self._asked_at.items() if now - at < PROOF_AGAIN_AFTER_S
        }
        self._asked_at[row.id] = now
        self._tasks.add(self._ask(row))

    async def _ask(self, row: NodeRow) -> None:
        nonce = new_nonce()
        try:
            given = await self._client.prove(self._nodes.address_of(row), nonce)
            if not is_proof(given, proof(row.secret_hash, row.id, nonce)):
                log.warning("node_not_proved", node_id=str(row.id), reason="proof_wrong")
                return
            async with self._coherence.transaction(wait_for_acks=False) as change:
                await change.run("UPDATE brain_node SET proved_at = now() WHERE id = %s", [row.id])
                change.announce(node_rows.TOPIC, row.id.hex)
        except RequestFailed as failure:
            log.warning("node_not_proved", node_id=str(row.id), reason=failure.reason)
        except DatabaseUnavailable:
            log.warning("node_not_proved", node_id=str(row.id), reason="database_away")
        else:
            log.info("node_proved", node_id=str(row.id))


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
