"""Compressed request bodies: expanded up to the limit and no further."""

import gzip
import json
import socket
import struct
import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from accounts.models import User
from common.api.bodies import BODY_LIMIT_BYTES, read_body
from common.errors import MalformedJson
from tests.cast import signed_in

LOGIN = "/v1/auth/login"
LIMIT_BYTES = BODY_LIMIT_BYTES


def packed(value: Any) -> bytes:
    return gzip.compress(json.dumps(value).encode(), mtime=0)


def test_a_gzip_body_is_read(alice: User) -> None:
    answer = signed_in(alice).call(
        "POST", "/v1/environments", packed({"name": "staging"}), CONTENT_ENCODING="gzip"
    )

    assert (answer.status, answer.body["name"]) == (201, "staging")


@pytest.mark.parametrize(
    ("body", "encoding", "status"),
    [
        (b"{}", "gzip", 400),
        (packed({})[:-1], "gzip", 400),
        (packed({}) + b"x", "gzip", 400),
        (packed({}) * 2, "gzip", 400),
        (zlib.compress(b"{}"), "gzip", 400),
        (b"", "gzip", 400),
        (packed({"email": "x" * LIMIT_BYTES}), "gzip", 413),
        (b"x" * (LIMIT_BYTES + 1), "gzip", 413),
        (b"{}", "br", 415),
        (packed({}), "gzip, gzip", 415),
    ],
)
def test_another_encoding_is_refused(
    anyone: Any, db: None, body: bytes, encoding: str, status: int
) -> None:
    answer = anyone.call("POST", LOGIN, body, CONTENT_ENCODING=encoding)

    assert answer.status == status, answer.body
    if status == 415:
        assert answer.headers["Accept-Encoding"] == "gzip, identity"


def test_a_body_that_expands_a_thousandfold_is_not_expanded(anyone: Any, db: None) -> None:
    bomb = gzip.compress(b"x" * 64 * 2**20)
    assert len(bomb) < LIMIT_BYTES * 2

    assert anyone.call("POST", LOGIN, bomb[:LIMIT_BYTES], CONTENT_ENCODING="gzip").status == 413


def test_a_body_whose_client_stops_sending_is_malformed() -> None:
    ours, theirs = socket.socketpair()
    # As the web server's sockets, but sooner.
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 1000))
    with ours, theirs, pytest.raises(MalformedJson):
        read_body(SimpleNamespace(read=ours.recv), encoding="", limit_bytes=10)


@pytest.mark.parametrize("number", [-2803460, 1.5, True])
def test_a_number_is_not_a_string(alice: User, number: Any) -> None:
    """Its digits would become a name, or a password that no one knows."""
    caller = signed_in(alice)
    for path, body, field in (
        ("/v1/api-keys", {"name": number, "role": "reader"}, "name"),
        ("/v1/environments", {"name": number}, "name"),
        ("/v1/sql", {"query": number}, "query"),
        (
            "/v1/invitations",
            {"email": "b@example.com", "roles": ["reader"], "labels": ["a", number]},
            "labels",
        ),
    ):
        answer = caller.post(path, body)
        assert answer.status == 400, (path, answer.body)
        assert [each["field"].split(".")[0] for each in answer.body["errors"]] == [field], path
