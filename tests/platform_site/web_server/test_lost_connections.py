"""A thread's connection to the control database that ended while the thread was idle."""

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from django.db import connection

from tests.web_process import web_process

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

END_OTHERS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def sign_in(client: HTTPConnection) -> int:
    """Sign in with wrong credentials, which writes; return the status."""
    body = {"email": "nobody@example.com", "password": "a wrong password"}
    client.request("POST", "/v1/auth/login", json.dumps(body), {"Content-Type": "application/json"})
    answer = client.getresponse()
    answer.read()
    return answer.status


@pytest.mark.parametrize("pool_size", ["0", "4"])
def test_no_request_is_spoiled_by_a_connection_that_ended(tmp_path: Path, pool_size: str) -> None:
    with (
        web_process(tmp_path, ZWEB_WORKERS="1", ZDB_POOL_SIZE=pool_size) as web,
        closing(web.connect()) as client,
    ):
        assert sign_in(client) == 401
        with connection.cursor() as cursor:
            cursor.execute(END_OTHERS)
        assert sign_in(client) == 401
