"""The identities of the cache's workers on this machine, created once and kept.

Each worker has a folder `cache/<region>/`: `node.json` (id, region, port), `secret` (0600),
`store/`.
"""

import json
import secrets
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from common.machine.files import read_text, write_private
from common.machine.folders import make_private
from common.machine.ports import PortReservations, free_port, is_free

FIRST_PORT: Final = 9101
LAST_PORT: Final = 9999
CAPACITY_BYTES: Final = 10 * 2**30
SECRET_BYTES: Final = 32


@dataclass(frozen=True, kw_only=True)
class LocalNode:
    """One worker of this machine. folder: its identity, secret and store."""

    folder: Path
    node_id: uuid.UUID
    region: str
    port: int
    capacity_bytes: int

    @property
    def endpoint(self) -> str:
        """The URL of the worker."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def secret_file(self) -> Path:
        """The file with the worker's credential."""
        return self.folder / "secret"

    @property
    def secret(self) -> str:
        """The worker's credential, read from its file."""
        return read_text(self.secret_file)


def nodes_dir(data_dir: Path) -> Path:
    """Return the parent of the local nodes' folders."""
    return data_dir / "cache"


def prepare(
    data_dir: Path, regions: Iterable[str], reservations: PortReservations
) -> list[LocalNode]:
    """Return a node for each region with its last identity; a port in use is replaced.

    The caller holds the data folder's lock, and the reservations until the nodes have stopped: the
    port of a running node counts as used.
    """
    nodes: list[LocalNode] = []
    make_private(nodes_dir(data_dir))
    for region in regions:
        folder = nodes_dir(data_dir) / region
        known = load(folder)
        taken = {node.port for node in nodes}
        port = known.port if known else 0
        if port in taken or not (port and is_free(port) and reservations.take(port)):
            port = _free_port(taken, reservations)
        nodes.append(
            save(
                folder,
                region=region,
                port=port,
                node_id=known.node_id if known else new_node_id(),
            )
        )
    return nodes


def load(folder: Path) -> LocalNode | None:
    """Read a node's folder; None if it is missing or unusable."""
    try:
        stored: dict[str, Any] = json.loads(read_text(folder / "node.json"))
        node = LocalNode(
            folder=folder,
            node_id=uuid.UUID(stored["node_id"]),
            region=str(stored["region"]),
            port=int(stored["port"]),
            capacity_bytes=int(stored["capacity_bytes"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
    return node if node.secret else None


def load_all(data_dir: Path) -> list[LocalNode]:
    """Return every node in the data folder."""
    folders = sorted(path.parent for path in nodes_dir(data_dir).glob("*/node.json"))
    return [node for node in map(load, folders) if node is not None]


def save(
    folder: Path,
    *,
    region: str,
    port: int,
    node_id: uuid.UUID,
    capacity_bytes: int = CAPACITY_BYTES,
) -> LocalNode:
    """Write a node's folder, with a new secret if it has none."""
    make_private(folder)
    node = LocalNode(
        folder=folder, node_id=node_id, region=region, port=port, capacity_bytes=capacity_bytes
    )
    if not node.secret:
        write_private(node.secret_file, secrets.token_urlsafe(SECRET_BYTES))
    stored = {
        "node_id": str(node_id),
        "region": region,
        "port": port,
        "capacity_bytes": capacity_bytes,
    }
    write_private(folder / "node.json", json.dumps(stored))
    return node


def new_node_id() -> uuid.UUID:
    """Return a time-ordered UUID. Source: RFC 9562 §5.7."""
    milliseconds = time.time_ns() // 1_000_000
    number = milliseconds << 80 | 7 << 76 | secrets.randbits(12) << 64
    return uuid.UUID(int=number | 2 << 62 | secrets.randbits(62))


def _free_port(taken: set[int], reservations: PortReservations) -> int:
    for port in range(FIRST_PORT, LAST_PORT + 1):
        if port not in taken and is_free(port) and reservations.take(port):
            return port
    return free_port()
