"""What the scopes of an API key mean in SQL: the role that the database knows."""

from collections.abc import Callable

import pytest

from accounts.models import ApiKey
from tests.cast import Caller

SignIn = Callable[[str], Caller]


def key_of(admin: Caller, **wanted: object) -> Caller:
    answer = admin.post("/v1/api-keys", {"name": "x", "role": "admin"} | wanted)
    assert answer.status == 201, answer.body
    return Caller(answer.body["key"])


def run(caller: Caller, query: str) -> int:
    return caller.post("/v1/sql", {"query": query}).status


@pytest.mark.parametrize(
    ("scopes", "reads", "writes", "defines"),
    [
        (["sql:read"], 200, 403, 403),
        (["sql:write"], 200, 200, 403),
        (["sql:write", "schema:write"], 200, 200, 200),
        (["sql:read", "schema:write"], 200, 403, 403),
        (["objects:write"], 403, 403, 403),
    ],
)
def test_scopes_decide_what_sql_may_do(
    signed_in_as: SignIn, scopes: list[str], reads: int, writes: int, defines: int
) -> None:
    admin = signed_in_as("admin")
    assert run(admin, "CREATE TABLE things (id int)") == 200
    key = key_of(admin, scopes=scopes)
    assert run(key, "SELECT * FROM things") == reads
    assert run(key, "INSERT INTO things VALUES (1)") == writes
    assert run(key, "CREATE TABLE others (id int)") == defines


def test_a_role_decides_as_well(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    assert run(admin, "CREATE TABLE things (id int)") == 200
    key = key_of(admin, role="operator")
    assert run(key, "INSERT INTO things VALUES (1)") == 200
    assert run(key, "DROP TABLE things") == 403


def test_keys_see_the_requests_and_transactions_of_their_own(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    first, second = key_of(admin, role="reader"), key_of(admin, role="reader")
    begun = first.post("/v1/sql/transactions", {})
    assert begun.status == 201, begun.body
    path = f"/v1/sql/transactions/{begun.body['id']}"
    assert first.get(path).status == 200
    assert second.get(path).status == 404
    assert admin.get(path).status == 404
    assert first.call("DELETE", path).status == 204


def test_a_key_that_is_revoked_within_a_transaction_ends_there(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    run(admin, "CREATE TABLE things (id int)")
    key = key_of(admin)
    begun = key.post("/v1/sql/transactions", {})
    path = f"/v1/sql/transactions/{begun.body['id']}"
    insert = {"number": 1, "query": "INSERT INTO things VALUES (1)"}
    assert key.post(f"{path}/statements", insert).status == 200
    (row,) = ApiKey.objects.all()
    assert admin.call("DELETE", f"/v1/api-keys/{row.pk}").status == 204
    assert key.post(f"{path}/commit").code == "api_key_invalid"
    answer = admin.post("/v1/sql", {"query": "SELECT count(*) FROM things"})
    assert answer.body["rows"] == [{"count": 0}]
