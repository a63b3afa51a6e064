"""Alice requests Charlie's objects on every route: 404, and nothing changes.

A route with an id of a new kind fails here until this module can make one.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.core import serializers
from django.utils import timezone

from accounts.invitations import invitations
from accounts.invitations.invitations import Host, Offer
from accounts.models import Domain, Identity, OrganizationExport, User, WebhookEndpoint
from accounts.webhooks import endpoints, signing
from edgecache.api import access_keys, buckets, client, hosts, nodes, origins
from edgecache.billing.models import Payout, Quarantine
from edgecache.billing.payouts import methods as payout_methods
from environments import environments
from platform_site.lib.crypto import encrypt
from platform_site.lib.principals import Scope
from sqlgateway.models import InteractiveTransaction, RunningSql, SavedQuery
from tests.cast import session_of, signed_in
from tests.rules.routes import Route, api_routes
from tests.twofactor.webauthn.authenticator import Authenticator
from tests.twofactor.webauthn.holder import with_passkey
from twofactor.trusted_devices import devices


def a_node() -> dict[str, Any]:
    """Return the fields of a worker that is not registered."""
    endpoint = f"http://{uuid4().hex}.example.com"
    return {"endpoint": endpoint, "region": "eu-central", "capacity_bytes": 2**30}


def home_of(user: User) -> Scope:
    """Return the user's ``live``."""
    return Scope(user.organization_id, environments.find(user.organization_id, "live").pk)


def host_of(user: User) -> str:
    """Add a verified host to the user's bucket."""
    place, host, token = home_of(user), f"{uuid4().hex}.example.com", uuid4().hex * 2
    (row,) = buckets.all_of(place)
    client.call(
        "POST",
        f"/v1/buckets/{row['id']}/hosts",
        query=client.tenant(place),
        body={"host": host, "token": token, "seen": [token]},
    )
    return host


def transaction_of(user: User) -> str:
    """Add the row of an interactive transaction, open in another process."""
    place, now = home_of(user), timezone.now()
    row = InteractiveTransaction.unscoped.create(
        id=uuid4(),
        organization_id=place.organization_id,
        environment_id=place.environment_pk,
        user_id=user.pk,
        caller_role="admin",
        role="admin",
        owner="127.0.0.1:9",
        active_until=now,
        expires_at=now,
    )
    return str(row.pk)


def running_sql(user: User) -> str:
    """Have an SQL request of the user's run in another process; return its id."""
    place, request_id = home_of(user), uuid4().hex
    RunningSql.unscoped.create(
        organization_id=place.organization_id,
        environment_id=place.environment_pk,
        user_id=user.pk,
        request_id=request_id,
        at=timezone.now(),
        expires_at=timezone.now() + timedelta(minutes=1),
    )
    return request_id


def key_of(user: User) -> str:
    """Make an API key to the user's ``live``."""
    body = {"name": "charlies-own", "role": "reader"}
    return str(signed_in(user).post("/v1/api-keys", body).body["id"])


def webhook_of(user: User) -> WebhookEndpoint:
    """Add a webhook to the user's organization."""
    endpoint: WebhookEndpoint = WebhookEndpoint.unscoped.create(
        organization_id=user.organization_id,
        url="https://hooks.example.com/charlies-own",
        events=["member.added"],
        secret=encrypt(signing.new_secret()),
        created_by=user.email,
        created_at=timezone.now(),
    )
    return endpoint


def payout_of(user: User) -> str:
    """Add a payout to a method of the user's organization."""
    method = payout_methods.replace(
        user.organization_id, "manual", {"account": "charlies-own"}, by="x", now=timezone.now()
    )
    row = Payout.objects.create(
        organization_id=user.organization_id,
        method=method,
        amount_cents=1,
        amount_ucr=1,
        currency="USD",
        state="reversed",
        requested_by="x",
    )
    return str(row.pk)


def quarantine_of(user: User) -> str:
    """Quarantine a node of the user's organization."""
    row = Quarantine.objects.create(
        event=user.organization_id,
        node_id=UUID(int=1),
        organization_id=user.organization_id,
        reason="x",
        began_at=timezone.now(),
    )
    return str(row.pk)


def export_of(user: User) -> str:
    """Add the row of an export of the user's organization."""
    row = OrganizationExport.unscoped.create(
        organization_id=user.organization_id,
        requested_by="charlies-own",
        requested_at=timezone.now(),
        state="ready",
    )
    return str(row.pk)


# How to make, in Charlie's organization, a thing with the id that a path asks for.
MAKERS: dict[str, Callable[[User], str]] = {
    "export_id": export_of,
    "environment_id": lambda user: environments.create(user.organization_id, "charlies-own").slug,
    "transaction_id": transaction_of,
    # An extension is the server's; the environment that has it is Charlie's.
    "extension_name": lambda user: "pg_trgm",
    "device_id": lambda user: str(devices.trust(user, "Charlie's phone", now=timezone.now()).pk),
    "user_id": lambda user: str(user.pk),
    "session_id": lambda user: str(session_of(user).pk),
    "invitation_id": lambda user: str(
        invitations.invite(
            user.organization_id,
            Offer("charlies-guest@example.org", ["reader"]),
            host=Host(user.pk, user.email),
            now=timezone.now(),
        ).pk
    ),
    "key_id": key_of,
    "webhook_id": lambda user: str(webhook_of(user).pk),
    "delivery_id": lambda user: str(endpoints.send_test(webhook_of(user), now=timezone.now()).pk),
    "identity_id": lambda user: str(
        Identity.unscoped.create(
            user=user,
            organization_id=user.organization_id,
            provider="google",
            subject="charlies-own",
            created_at=timezone.now(),
        ).pk
    ),
    "domain_id": lambda user: str(
        Domain.unscoped.create(
            organization_id=user.organization_id,
            domain="charlies-own.example",
            role="reader",
            token="x",
            created_at=timezone.now(),
        ).pk
    ),
    "node_id": lambda user: str(nodes.register(user.organization_id, a_node())["node_id"]),
    "bucket_name": lambda user: str(
        buckets.create(home_of(user), {"name": f"charlies-{user.pk}"})["name"]
    ),
    "host": host_of,
    "access_key_id": lambda user: str(
        access_keys.create(home_of(user), {"label": "x"})["access_key_id"]
    ),
    "origin_name": lambda user: str(
        origins.create(
            home_of(user),
            {
                "name": f"charlies-{user.pk}",
                "kind": "http",
                "config": {"url": "https://origin.example.com/"},
            },
        )["name"]
    ),
    "request_id": running_sql,
    "query_id": lambda user: str(
        SavedQuery.unscoped.create(
            organization_id=user.organization_id, name="charlies-own", text="SELECT 1"
        ).pk
    ),
    "payout_id": payout_of,
    "quarantine_id": quarantine_of,
    "credential_id": lambda user: (
        with_passkey(user, Authenticator(origin="http://localhost:8000")).key.credential_id
    ),
}

# Every signed-in user may list these, with their public fields (tests/edgecache/api).
PUBLIC = {("GET", "v1/cache/nodes/<str:node_id>")}
PUBLIC_IDS = {"node_id"}

# Words of the interface and not ids of anybody's; and capabilities, where knowing the id is the
# permission, so that tests of their own show what a stranger gets (410, alike for all).
NO_IDS = {"method", "challenge_id", "provider"}

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
    ("POST", f"{OBJECTS}/delete"): {"keys": ["a"]},
    ("POST", f"{OBJECTS}/download-url"): {"key": "a"},
    ("POST", f"{OBJECTS}/upload-urls"): {"key": "a"},
    ("PATCH", "v1/members/<str:user_id>"): {"roles": ["reader"], "disabled": True},
}

WITH_IDS = [
    (route, method)
    for route in api_routes()
    if set(route.placeholders) - NO_IDS
    for method in route.methods
    if (method, route.path) not in PUBLIC
]
# Owned by an organization without a foreign key: records that outlive it.
BY_ID = {"billing.Payout", "billing.PayoutMethod", "billing.Account", "billing.TopUp"}
BY_ID |= {"billing.Quarantine"}
# Written by any request: who asked and how often.
CIRCUMSTANCES = {"accounts.Throttle", "accounts.AuditEvent", "accounts.Session"}


def belongings(user: User) -> str:
    """Return every row of the user's organization, as text."""
    rows: list[Any] = []
    for model in apps.get_models():
        names = {field.name for field in model._meta.get_fields()}
        is_owned = "organization" in names or model._meta.label in BY_ID
        if is_owned and model._meta.label not in CIRCUMSTANCES:
            manager = model._base_manager
            rows += manager.filter(organization_id=user.organization_id).order_by("pk")
    place = home_of(user)
    cached = [
        buckets.all_of(place),
        [hosts.all_of(place, row["name"]) for row in buckets.all_of(place)],
        [key["access_key_id"] for key in access_keys.all_of(place)],
        origins.all_of(place),
        [node["node_id"] for node in nodes.all_seen_by(user.organization_id) if node["is_own"]],
    ]
    return f"{serializers.serialize('json', rows)}{cached}"


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
