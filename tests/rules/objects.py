"""One object of each kind that a path names, made for a user."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from accounts.models import User
from billing.models.payouts import Payout
from billing.models.quarantines import Quarantine
from billing.payouts import methods as payout_methods
from common.principals import Scope
from edgecache.api import buckets, client
from environments import environments
from oauth.models import Domain, Identity
from organizations.models import OrganizationExport
from sqlgateway.models import InteractiveTransaction, RunningSql, SavedQuery
from tests.cast import session_of, signed_in
from tests.organizations.support import invite
from tests.outbox.webhooks import support as webhooks
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


def created(user: User, path: str, body: dict[str, Any]) -> dict[str, str]:
    """Return the answer to a request that creates something in the cache."""
    answer = signed_in(user).post(f"/v1/cache/{path}", body)
    assert answer.status == 201, answer.body
    fields: dict[str, str] = answer.body
    return fields


def host_in(user: User, bucket_name: str) -> str:
    """Add a verified host to one of the user's buckets."""
    place, host, token = home_of(user), f"{uuid4().hex}.example.com", uuid4().hex * 2
    client.call(
        "POST",
        f"/v1/buckets/{buckets.find(place, bucket_name)['id']}/hosts",
        query=client.tenant(place),
        body={"host": host, "token": token, "seen": [token]},
    )
    return host


def host_of(user: User) -> str:
    """Add a verified host to the user's bucket."""
    (row,) = buckets.all_of(home_of(user))
    return host_in(user, row["name"])


def transaction_of(user: User) -> str:
    """Add the row of an interactive transaction, open in another process."""
    place, now = home_of(user), timezone.now()
    row = InteractiveTransaction.objects.create(
        id=uuid4(),
        organization_id=place.organization_id,
        environment_id=place.environment_pk,
        user_id=user.pk,
        caller_role="admin",
        role="admin",
        owner="00000000-00000000",
        active_until=now,
        expires_at=now,
    )
    return str(row.pk)


def running_sql(user: User) -> str:
    """Have an SQL request of the user's run in another process; return its id."""
    place, request_id = home_of(user), uuid4().hex
    RunningSql.objects.create(
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


def webhook_of(user: User) -> dict[str, Any]:
    """Add a webhook to the user's organization."""
    return webhooks.added(user, "https://hooks.example.com/charlies-own")


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
    row = OrganizationExport.objects.create(
        organization_id=user.organization_id,
        requested_by="charlies-own",
        requested_at=timezone.now(),
        state="ready",
    )
    return str(row.pk)


# How to make, in a user's organization, a thing with the id that a path asks for.
MAKERS: dict[str, Callable[[User], str]] = {
    "export_id": export_of,
    "environment_id": lambda user: environments.create(user.organization_id, "charlies-own").slug,
    "transaction_id": transaction_of,
    # An extension is the server's; the environment that has it is Charlie's.
    "extension_name": lambda user: "pg_trgm",
    "device_id": lambda user: str(devices.trust(user, "Charlie's phone", now=timezone.now()).pk),
    "user_id": lambda user: str(user.pk),
    "session_id": lambda user: str(session_of(user).pk),
    "invitation_id": lambda user: invite(user, "charlies-guest@example.org").body["id"],
    "key_id": key_of,
    "webhook_id": lambda user: str(webhook_of(user)["id"]),
    "delivery_id": lambda user: webhooks.send_test(user, webhook_of(user)),
    "identity_id": lambda user: str(
        Identity.objects.create(
            user=user,
            organization_id=user.organization_id,
            provider="google",
            subject="charlies-own",
            created_at=timezone.now(),
        ).pk
    ),
    "domain_id": lambda user: str(
        Domain.objects.create(
            organization_id=user.organization_id,
            domain="charlies-own.example",
            role="reader",
            token="x",
            created_at=timezone.now(),
        ).pk
    ),
    "node_id": lambda user: created(user, "nodes/register", a_node())["node_id"],
    "bucket_name": lambda user: str(
        buckets.create(home_of(user), {"name": f"charlies-{uuid4().hex}"})["name"]
    ),
    "host": host_of,
    "access_key_id": lambda user: created(user, "access-keys", {"label": "x"})["access_key_id"],
    "origin_name": lambda user: created(
        user,
        "origins",
        {
            "name": f"charlies-{uuid4().hex}",
            "kind": "http",
            "config": {"url": "https://origin.example.com/"},
        },
    )["name"],
    "request_id": running_sql,
    "query_id": lambda user: str(
        SavedQuery.objects.create(
            organization_id=user.organization_id, name="charlies-own", text="SELECT 1"
        ).pk
    ),
    "payout_id": payout_of,
    "quarantine_id": quarantine_of,
    "credential_id": lambda user: (
        with_passkey(user, Authenticator(origin="http://localhost:8000")).key.credential_id
    ),
}
