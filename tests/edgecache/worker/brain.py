"""A brain as its workers see it: an HTTP server on loopback with responses set by the test."""

import hashlib
import os
import ssl
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from edgecache.protocol import fields as messages
from edgecache.protocol.credentials import authorization
from edgecache.protocol.fields import Answer
from edgecache.protocol.heartbeats import Heartbeat, HeartbeatAnswer, TicketKey
from edgecache.protocol.inventories import Inventory, InventoryAnswer
from edgecache.protocol.jobs import Job, JobDone, Jobs, JobsDone
from edgecache.protocol.receipts import ReceiptLine, Receipts, ReceiptsAnswer, RefusedReceipt
from edgecache.protocol.tickets import MAC_KEY_BYTES, Ticket, TicketKind, decode, encode, key_id
from tests.http_server import HttpServer

NODE = UUID("0198c0de-0000-7000-8000-000000000001")
SECRET = "s3cret-of-the-node_" + "x" * 24
CLIENT = "127.0.0.0/8"


@dataclass
class Signer:
    """Signs tickets as a brain does. skew_s: offset of its clock from this machine's."""

    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    mac_key: bytes = field(default_factory=lambda: os.urandom(MAC_KEY_BYTES))
    skew_s: float = 0.0

    @property
    def ticket_key(self) -> TicketKey:
        """Return the key that its worker needs."""
        raw = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return TicketKey(key_id(raw), self.mac_key)

    def now(self) -> float:
        """Return the brain's time."""
        return time.time() + self.skew_s

    def ticket(self, content: bytes | None = None, **fields: Any) -> str:
        """Return a ticket to read some bytes; fields replace the defaults."""
        issued_at = int(self.now())
        usual: dict[str, Any] = {
            "id": uuid4(),
            "node_id": NODE,
            "organization_id": 1,
            "environment_pk": 2,
            "bucket_id": 3,
            "start": 0,
            "kind": TicketKind.READ,
            "client_prefix": "",
            "issued_at": issued_at,
            "expires_at": fields.get("issued_at", issued_at) + 30,
            "key_id": self.ticket_key.kid,
        }
        if content is not None:
            usual |= {"sha256": hashlib.sha256(content).digest(), "length": len(content)}
        ticket = Ticket(**(usual | fields))
        return encode(ticket, mac_key=self.mac_key, sign=self.key.sign)


class FakeBrain:
    """The brain's worker API: records the messages it gets; its responses can be set."""

    def __init__(self) -> None:
        """Listen on a free port."""
        self.signer = Signer()
        self.interval_s = 0.1
        self.wants_inventory = False
        self.status = "active"
        self.http_status = 200
        self.jobs: list[Job] = []
        self.unknown: set[bytes] = set()
        self.refused: dict[UUID, str] = {}
        self.beats: list[Heartbeat] = []
        self.inventories: list[Inventory] = []
        self.receipts: list[ReceiptLine] = []
        self.batches: list[list[str]] = []
        self.done: dict[int, JobDone] = {}
        self.reports: list[tuple[JobDone, ...]] = []
        self.requests = 0
        self.drops_connections = False
        self.garbage: bytes | None = None
        self.changed = threading.Condition()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._scheme = "http"
        self._server = HttpServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        """Return its base URL."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def use_tls(self, certificate: tuple[Path, Path]) -> None:
        """Use HTTPS from now on. certificate: a certificate and its key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        # A client that does not trust the certificate fails its handshake in its own thread.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._scheme = "https"

    def close(self) -> None:
        """Stop."""
        self.may_answer.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def held(self) -> dict[bytes, int]:
        """Return the worker's blobs by its reports."""
        known: dict[bytes, int] = {}
        for message in self.inventories:
            if message.full and message.page == 0:
                known = {}
            known |= {held.sha256: held.size for held in message.added}
            for sha256 in message.removed:
                known.pop(sha256, None)
        return known

    def wait_for(self, true: Any, *, timeout_s: float = 15.0) -> None:
        """Wait until a message makes this true."""
        with self.changed:
            assert self.changed.wait_for(true, timeout_s), "the worker did not say it in time"

    def wait_for_beat(self) -> Heartbeat:
        """Wait for a heartbeat that begins after now (the first may have been sent before)."""
        seen = len(self.beats)
        self.wait_for(lambda: len(self.beats) >= seen + 2)
        return self.beats[-1]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Answer | dict[str, str]]:
        """Answer one call."""
        name = path.removeprefix(f"/v1/workers/{NODE}/")
        if self.http_status != 200:
            return self.http_status, {"code": "told_so", "detail": "By the test."}
        match method, name.partition("?")[0].split("/"):
            case "POST", ["heartbeat"]:
                return 200, self._beat(messages.decode(body, Heartbeat))
            case "POST", ["inventory"]:
                message = messages.decode(body, Inventory)
                self.inventories.append(message)
                named = {held.sha256 for held in message.added}
                return 200, InventoryAnswer(tuple(self.unknown & named))
            case "POST", ["receipts"]:
                return 200, self._receipts(messages.decode(body, Receipts))
            case "GET", ["jobs"]:
                return 200, Jobs(tuple(self.jobs))
            case "POST", ["jobs", "done"]:
                ended = messages.decode(body, JobsDone).jobs
                self.reports.append(ended)
                self.done |= {job.id: job for job in ended}
                self.jobs = [job for job in self.jobs if job.id not in self.done]
                return 200, {}
        return 404, {"code": "not_found"}

    def _beat(self, beat: Heartbeat) -> HeartbeatAnswer:
        self.beats.append(beat)
        wants_inventory, self.wants_inventory = self.wants_inventory, False
        return HeartbeatAnswer(
            now=self.signer.now(),
            keys=(self.signer.ticket_key,),
            status=self.status,
            wants_inventory=wants_inventory,
            jobs=len(self.jobs),
            interval_s=self.interval_s,
        )

    def _receipts(self, batch: Receipts) -> ReceiptsAnswer:
        """Accept all of a batch, or only say what of it is refused, as the brain does."""
        self.receipts += batch.receipts
        self.batches.append([line.ticket for line in batch.receipts])
        ids = [decode(line.ticket).ticket.id for line in batch.receipts]
        refused = [
            RefusedReceipt(place, self.refused[ticket_id], ticket_id)
            for place, ticket_id in enumerate(ids)
            if ticket_id in self.refused
        ]
        return ReceiptsAnswer(() if refused else tuple(ids), tuple(refused))


def _handler(brain: FakeBrain) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def handle_call(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            brain.requests += 1
            brain.may_answer.wait()
            said: Answer | dict[str, str]
            if self.headers["Authorization"] != authorization(NODE, SECRET):
                status, said = 401, {"code": "not_authenticated"}
            else:
                status, said = brain.answer(self.command, self.path, body)
            raw = messages.encode(said) if brain.garbage is None else brain.garbage
            # Without "Connection: close", so that the keep-alive connection ends unannounced.
            self.close_connection = brain.drops_connections
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)
            with brain.changed:
                brain.changed.notify_all()

        do_GET = handle_call  # noqa: N815 - the library's names
        do_POST = handle_call  # noqa: N815 - the library's names

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    return Handler
