"""Alice requests Charlie's objects on every route: 404, and nothing changes.

A route with an id of a new kind fails here until this module can make one.
"""

from functools import cache
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from psycopg import sql

from accounts.models import Session, User
from audit.models import AuditEvent
from billing.models.ledger import Account
from billing.models.payouts import Payout, PayoutMethod
from billing.models.quarantines import Quarantine
from billing.models.topups import TopUp
from common.models import Throttle
from edgecache.api import access_keys, buckets, hosts, nodes, origins
from tests.cast import session_of, signed_in
from tests.rules.objects import MAKERS, home_of
from tests.rules.routes import Route, api_routes

# Every signed-in user may list these, with their public fields (tests/edgecache/api).
PUBLIC = {("GET", "v1/cache/nodes/<str:node_id>")}
PUBLIC_IDS = {"node_id"}

# Words of the interface and not ids of anybody's; and capabilities, where knowing the id is the
# permission, so that tests of their own show what a stranger gets (410, alike for all).
NO_IDS = {"method", "challenge_id", "provider"}
CAPABILITY = "v1/auth/terminal/<str:request_id>"

OBJECTS = "v1/cache/buckets/<str:bucket_name>/objects"
# Queries and bodies that would be valid, so that a refusal is not for the body's sake.
QUERIES = {("GET", f"{OBJECTS}/details"): "?key=a"}
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("PATCH", "v1/environments/<str:environment_id>"): {"name": "stolen"},
    ("POST", "v1/cache/quarantines/<str:quarantine_id>/appeal"): {"text": "stolen"},
    ("POST", "v1/environments/<str:environment_id>/extensions"): {"name": "pg_trgm"},
    ("POST", "v1/sql/transactions/<str:transaction_id>/statements"): {
        "number": 1,
        "query": "SELECT 1",
    },
    ("PATCH", "v1/sql/queries/<str:query_id>"): {"version": 1, "query": "SELECT 'stolen'"},
    ("POST", "v1/members/<str:user_id>/factors/reset"): {"reason": "stolen"},
    ("PATCH", "v1/cache/buckets/<str:bucket_name>"): {"is_public": True},
    ("POST", "v1/cache/buckets/<str:bucket_name>/hosts"): {"host": "stolen.example.com"},
    ("POST", "v1/cache/buckets/<str:bucket_name>/signed-links"): {"key": "stolen"},
    ("PATCH", "v1/cache/origins/<str:origin_name>"): {"secret": {"authorization": "stolen"}},
    ("POST", f"{OBJECTS}/delete"): {"keys": ["a"]},
    ("POST", f"{OBJECTS}/download-url"): {"key": "a"},
    ("POST", f"{OBJECTS}/upload-urls"): {"key": "a"},
    ("POST", f"{OBJECTS}/upload-form"): {"prefix": "a/"},
    ("POST", f"{OBJECTS}/versions/delete"): {"key": "a", "version_id": "null"},
    ("POST", f"{OBJECTS}/versions/restore"): {"key": "a", "version_id": "null"},
    ("PATCH", "v1/members/<str:user_id>"): {"roles": ["reader"], "disabled": True},
}

WITH_IDS = [
    (route, method)
    for route in api_routes()
    if set(route.placeholders) - NO_IDS and not route.path.startswith(CAPABILITY)
    for method in route.methods
    if (method, route.path) not in PUBLIC
]
# Owned by an organization without a foreign key: records that outlive it.
BY_ID = {Payout, PayoutMethod, Account, TopUp, Quarantine}
# Written by any request: who asked and how often.
CIRCUMSTANCES = {Throttle, AuditEvent, Session}


@cache
def _rows_of_an_organization() -> sql.Composed:
    """Return one query for the rows of all models, as one for each takes most of the time."""
    selects = []
    for model in apps.get_models():
        meta = model._meta
        names = {field.name for field in meta.get_fields()}
        if ("organization" in names or model in BY_ID) and model not in CIRCUMSTANCES:
            select = "SELECT {}, {}::text, to_jsonb(t)::text FROM {} t WHERE organization_id = {}"
            selects.append(
                sql.SQL(select).format(
                    sql.Literal(meta.label),
                    sql.Identifier(meta.pk.column),
                    sql.Identifier(meta.db_table),
                    sql.Placeholder("organization_id"),
                )
            )
    return sql.SQL("{} ORDER BY 1, 2").format(sql.SQL(" UNION ALL ").join(selects))


def belongings(user: User) -> str:
    """Return every row of the user's organization, as text."""
    with connection.cursor() as cursor:
        query = _rows_of_an_organization().as_string(cursor.connection)
        cursor.execute(query, {"organization_id": user.organization_id})
        rows = cursor.fetchall()
    assert rows
    place = home_of(user)
    cached = [
        buckets.all_of(place),
        [hosts.all_of(place, row["name"]) for row in buckets.all_of(place)],
        [key["access_key_id"] for key in access_keys.all_of(place)],
        origins.all_of(place),
        [node["node_id"] for node in nodes.all_seen_by(user.organization_id) if node["is_own"]],
    ]
    return f"{rows}{cached}"


@pytest.mark.parametrize(
    ("route", "method"), WITH_IDS, ids=[f"{method} {route.path}" for route, method in WITH_IDS]
)
def test_another_organizations_objects_are_404_and_unchanged(
    alice: User, charlie: User, route: Route, method: str
) -> None:
    values = {}
    for name in route.placeholders:
        assert name in MAKERS, f"{route.path}: teach MAKERS to make a {name}"
        values[name] = MAKERS[name](charlie)
    before = belongings(charlie)
    caller = signed_in(alice)
    query = QUERIES.get((method, route.path), "")
    answer = caller.call(method, route.filled(values) + query, BODIES.get((method, route.path)))
    assert answer.status == 404, answer.body
    # Absent and forbidden look the same.
    absent = caller.call(
        method,
        route.filled(dict.fromkeys(values, "00000000-0000-7000-8000-000000000000")) + query,
        BODIES.get((method, route.path)),
    )
    assert (absent.status, absent.code) == (answer.status, answer.code)
    assert belongings(charlie) == before


# What belongs to one environment, and so is not there for a token of another one.
PLACED = {"bucket_name", "host", "access_key_id", "origin_name", "request_id", "key_id"}
IN_A_PLACE = [(route, method) for route, method in WITH_IDS if set(route.placeholders) & PLACED]


@pytest.mark.parametrize(
    ("route", "method"), IN_A_PLACE, ids=[f"{method} {route.path}" for route, method in IN_A_PLACE]
)
def test_another_environments_objects_are_404_and_unchanged(
    alice: User, route: Route, method: str
) -> None:
    # Made in live by the same person, and asked for with a token of sandbox.
    values = {name: MAKERS[name](alice) for name in route.placeholders}
    caller = signed_in(alice, "sandbox")
    before = belongings(alice)
    query = QUERIES.get((method, route.path), "")
    answer = caller.call(method, route.filled(values) + query, BODIES.get((method, route.path)))
    assert answer.status == 404, answer.body
    assert belongings(alice) == before


@pytest.mark.parametrize("path", ["v1/cache/buckets", "v1/cache/access-keys", "v1/cache/origins"])
def test_no_list_shows_objects_of_another_environment(alice: User, path: str) -> None:
    made = [MAKERS[name](alice) for name in MAKERS if name in PLACED]
    shown = signed_in(alice).get(f"/{path}").raw.content.decode()
    assert any(name in shown for name in made)
    answer = signed_in(alice, "sandbox").get(f"/{path}")
    assert answer.status == 200
    for name in made:
        assert name not in answer.raw.content.decode()


LISTS = [route for route in api_routes() if not route.placeholders and "GET" in route.methods]


@pytest.mark.parametrize("route", LISTS, ids=[route.path for route in LISTS])
def test_no_list_shows_objects_of_another_organization(
    alice: User, charlie: User, route: Route
) -> None:
    made = [make(charlie) for name, make in MAKERS.items() if name not in PUBLIC_IDS]
    made += ["charlie@example.org", "Charlie's", str(charlie.pk), str(session_of(charlie).pk)]
    answer = signed_in(alice).get(route.filled({}))
    # Some have nothing to give (no factor to ask for, no payout method); none has Charlie's.
    assert answer.status in {200, 404, 409}
    for trace in made:
        assert trace not in answer.raw.content.decode()
