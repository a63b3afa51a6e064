"""Providers on loopback, and what tests of the delivery ask of the database."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.db import connection

from outbox.models import Delivery
from outbox.tasks import deliver
from tests.http_server import HttpServer
from tests.ports import free_port

CODE = "493817"
# As the code of an answer: a page of some proxy's instead of JSON.
NO_JSON = -1


class Mailbox:
    """What an SMTP server took, and what it has to refuse.

    rcpt, data: a reply to give instead of taking, such as ``550 no such user``. data_delay_s: how
    long it takes to accept a mail.
    """

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.rcpt = ""
        self.data = ""
        self.data_delay_s = 0.0

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.rcpt:
            return self.rcpt
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.data:
            return self.data
        await asyncio.sleep(self.data_delay_s)
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients += envelope.rcpt_tos
        return "250 OK"


@contextmanager
def smtp_server(mailbox: Mailbox, port: int = 0) -> Iterator[int]:
    """Run an SMTP server on loopback; give its port."""
    port = port or free_port()
    controller = Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def smtp_options(port: int) -> dict[str, Any]:
    """Return MAIL_OPTIONS for a server without TLS or sign-in."""
    return {
        "host": "127.0.0.1",
        "port": port,
        "username": "",
        "password": "",
        "use_tls": False,
        "use_ssl": False,
        "timeout": 2,
    }


class Twilio(HttpServer):
    """Speaks as much of Twilio's Messages API as we do.

    answers: (status, code, headers), one for each call to come, after them success.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Messages)
        self.answers: list[tuple[int, int, dict[str, str]]] = []
        self.requests: list[dict[str, Any]] = []
        self.delay_s = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Messages(BaseHTTPRequestHandler):
    server: Twilio

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        sent: dict[str, Any]
        if body.startswith("{"):
            sent = json.loads(body)
        else:
            sent = {name: values[0] for name, values in parse_qs(body).items()}
        self.server.requests.append(
            sent | {"path": self.path, "auth": self.headers.get("Authorization", "")}
        )
        time.sleep(self.server.delay_s)
        status, code, headers = self.server.answers.pop(0) if self.server.answers else (201, 0, {})
        # Postmark spells the same things with capitals.
        said = f"Invalid 'To' address: '{sent.get('To')}'."
        answer = {"code": code, "ErrorCode": code, "message": said, "Message": said}
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"<html>" if code == NO_JSON else json.dumps(answer).encode())
        except BrokenPipeError:
            # The caller did not wait.
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


@contextmanager
def twilio_server() -> Iterator[Twilio]:
    """Run it on loopback."""
    server = Twilio()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(delivery: Delivery) -> Delivery:
    """Run the delivery's job, as the worker does; give the row as it is now."""
    deliver(str(delivery.pk))
    delivery.refresh_from_db()
    return delivery


def jobs_of(delivery: Delivery) -> list[dict[str, Any]]:
    """Return the arguments and times of a delivery's jobs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT args, scheduled_at, status::text, queueing_lock FROM procrastinate_jobs "
            "WHERE task_name = 'outbox.messages.deliver' AND args->>'delivery_id' = %s "
            "ORDER BY id",
            [str(delivery.pk)],
        )
        names = ("args", "scheduled_at", "status", "queueing_lock")
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    # Django hands JSON columns over as text.
    return [row | {"args": json.loads(row["args"])} for row in rows]
