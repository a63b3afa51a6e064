"""Reasons are the other side's own words, without what must not be in a log."""

import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import requests
from django.conf import settings
from django.core import mail

from common.machine.reasons import MAX_CHARS, reason
from tests.ports import free_port

PASSWORD = "hunter2hunter2"


def raised(call: Callable[[], object]) -> str:
    """Return the reason of what a call raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of any library
        call()
    said = reason(caught.value)
    assert PASSWORD not in said
    assert "\n" not in said
    return said


def database(**parts: Any) -> Callable[[], object]:
    """Return a call that connects to the control database with other parts."""
    return lambda: psycopg.connect(settings.DATABASE_URL, connect_timeout=2, **parts)


def test_postgresql_says_what_is_wrong() -> None:
    assert 'database "nowhere" does not exist' in raised(database(dbname="nowhere"))
    closed = raised(database(host="127.0.0.1", port=str(free_port()), password=PASSWORD))
    assert "Connection refused" in closed
    unknown = raised(database(host="nowhere.invalid", password=PASSWORD))
    assert "nowhere.invalid" in unknown
    malformed = f"postgres://u:{PASSWORD}@h/x?{PASSWORD}=1"
    assert "…" in raised(lambda: psycopg.connect(malformed))


def test_of_a_statement_there_is_the_first_line_and_the_sqlstate() -> None:
    def ask() -> None:
        with psycopg.connect(settings.DATABASE_URL) as connection:
            connection.execute("SELECT * FROM nowhere WHERE secret = 'hunter2hunter2'")

    assert raised(ask) == 'relation "nowhere" does not exist (SQLSTATE 42P01)'


def test_requests_say_what_the_network_said() -> None:
    url = f"https://u:{PASSWORD}@127.0.0.1:{free_port()}/a?key={PASSWORD}"
    said = raised(lambda: requests.get(url, timeout=2))
    assert "Connection refused" in said
    assert "0x" not in said
    missing = requests.Response()
    missing.status_code, missing.url = 404, f"https://h/a?key={PASSWORD}"
    assert raised(missing.raise_for_status).startswith("404 Client Error")


@contextmanager
def speaking(*lines: bytes) -> Iterator[int]:
    """Yield the port of a server that sends a line for each that it receives."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            accepted, _ = listening.accept()
            with accepted, accepted.makefile("rwb") as stream:
                for line in lines:
                    stream.write(line)
                    stream.flush()
                    if not stream.readline():
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(timeout=10)


def test_a_relay_without_starttls_and_one_that_refuses_the_password() -> None:
    options: dict[str, Any] = {
        "host": "127.0.0.1",
        "timeout": 5,
        "username": "u",
        "password": PASSWORD,
    }
    backend = "outbox.messages.mail.EmailBackend"
    with speaking(b"220 hi\r\n", b"250 relay\r\n", b"250 relay\r\n") as port:
        server = mail.get_connection(backend, port=port, use_tls=True, **options)
        assert raised(server.__enter__) == "STARTTLS extension not supported by server."
    greetings = (
        b"220 hi\r\n",
        b"250-relay\r\n250 AUTH PLAIN\r\n",
        b"535 5.7.8 not u@example.com\r\n",
    )
    with speaking(*greetings, b"221 bye\r\n") as port:
        server = mail.get_connection(backend, port=port, **options)
        assert raised(server.__enter__) == "535 5.7.8 not …"


def test_tls_to_a_port_without_it() -> None:
    with speaking(b"220 hi\r\n") as port:
        said = raised(lambda: smtplib.SMTP_SSL("127.0.0.1", port, timeout=5))
    assert "wrong version number" in said.lower().replace("_", " ")
    assert "_ssl.c" not in said


@pytest.mark.parametrize(
    ("exc", "said"),
    [
        (
            smtplib.SMTPRecipientsRefused({"bob@example.com": (550, b"no bob@example.com")}),
            "550 no …",
        ),
        (TimeoutError(), "no answer in time"),
        (socket.gaierror(-2, "Name or service not known"), "[Errno -2] Name or service not known"),
        (ssl.SSLError(1, "[SSL] wrong version number (_ssl.c:1006)"), "[SSL] wrong version number"),
        (ValueError(), "ValueError"),
        (RuntimeError(f"at postgres://u:{PASSWORD}@db/x"), "at postgres://…@db/x"),
        (RuntimeError(f"at https://u:a/{PASSWORD}@b@db/x"), "at https://…@db/x"),
        (RuntimeError(f"password={PASSWORD} host=db"), "password=… host=db"),
        (
            RuntimeError(f'{{"secret_key": "{PASSWORD} {PASSWORD}", "a": 1}}'),
            '{"secret_key": …, "a": 1}',
        ),
        (RuntimeError(f"Bearer {PASSWORD} is wrong"), "Bearer … is wrong"),
        (RuntimeError(f"Authorization failed: Token {PASSWORD}"), "Authorization failed: Token …"),
        (RuntimeError("the token is wrong"), "the token is wrong"),
        (RuntimeError("no key sk_live_4eC39HqLyjWDarjtT1zdp7dc"), "no key …"),
        (RuntimeError("ghp_16C7e42F292c6912E7710c838347Ae178B4a is no key"), "… is no key"),
        (RuntimeError("no pk_orders in the table"), "no pk_orders in the table"),
        (RuntimeError(f"password=a {PASSWORD} b host=db"), "password=… host=db"),
        (RuntimeError(f"the password: a {PASSWORD}"), "the password: …"),
        (RuntimeError(f"at smtp://u:a {PASSWORD}@mail/x"), "at smtp://…@mail/x"),
        (RuntimeError("http://db:80 refuses u@example.com"), "http://db:80 refuses …"),
        (RuntimeError(f"AGE-SECRET-KEY-1{PASSWORD} is no key"), "… is no key"),
        (RuntimeError(f"https://h/x?sig={PASSWORD}&a=1 is gone"), "https://h/x?… is gone"),
        (RuntimeError("no +4915112345678 here"), "no … here"),
        (RuntimeError("red \x1b[31m\nalert"), "red [31m alert"),
    ],
)
def test_secrets_people_and_control_characters_are_left_out(exc: Exception, said: str) -> None:
    assert reason(exc) == said


def test_a_reason_is_bounded() -> None:
    assert len(reason(RuntimeError("long " * 1000))) == MAX_CHARS
