"""The cache in the admin: data of every tenant, for staff only, with a real brain."""

import secrets
from dataclasses import replace

import pytest
from django.test import Client
from django.utils.html import escape
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Environment
from tests.cast import signed_in
from tests.edgecache.brain.support import ClusterRows
from tests.edgecache.cluster import Cluster
from tests.ports import free_port
from tests.staff import staff_inside

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("over_a_brain")]
PAGES = ("nodes", "buckets", "hosts", "origins", "keys")
ORIGIN = {"kind": "s3", "config": {"bucket": "my-bucket", "region": "eu-central-1"}}


@pytest.fixture
def inside(db: None) -> Client:
    """Return a staff member's browser."""
    return staff_inside()


@pytest.fixture
def node(alice: User) -> str:
    """Return the id of a node of Alice's that waits for approval."""
    endpoint = f"http://{secrets.token_hex(4)}.example.com"
    wanted = {"endpoint": endpoint, "region": "us-east", "capacity_bytes": 2**30}
    return str(signed_in(alice).post("/v1/cache/nodes/register", wanted).body["node_id"])


def page(browser: Client, name: str, query: str = "") -> str:
    """Return a page's text."""
    response = browser.get(f"/admin/edgecache/{name}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_staff_see_what_every_tenant_has_without_secrets(
    inside: Client, alice: User, charlie: User
) -> None:
    hidden = []
    for user, name in ((alice, "alices-media"), (charlie, "charlies-media")):
        caller = signed_in(user)
        assert caller.post("/v1/cache/buckets", {"name": name}).status == 201
        made = caller.post("/v1/cache/access-keys", {"label": f"of {name}"}).body
        secret = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": f"secret-of-{name}"}
        origin = ORIGIN | {"name": f"{name}-origin", "secret": secret}
        assert caller.post("/v1/cache/origins", origin).status == 201
        hidden += [made["secret_access_key"], f"secret-of-{name}"]

    pages = ("buckets", "keys", "origins")
    buckets, keys, origins = (page(inside, name, "?search=s-media") for name in pages)

    for name in ("alices-media", "charlies-media"):
        assert name in buckets
        assert f"of {name}" in keys
        assert f"{name}-origin" in origins
    assert not any(secret in buckets + keys + origins for secret in hidden)


def test_environments_origins_and_organizations_are_shown_by_their_names(
    inside: Client, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    caller = signed_in(alice, "sandbox")
    named = ORIGIN | {"name": "from-afar"}
    assert caller.post("/v1/cache/origins", named).status == 201
    for number in range(3):
        bucket = {"name": f"named-{number}", "origin": "from-afar"}
        assert caller.post("/v1/cache/buckets", bucket).status == 201
    caller.post("/v1/cache/access-keys", {"label": "named"})
    with django_assert_max_num_queries(8):
        buckets = page(inside, "buckets", "?search=named-")
    assert buckets.count("<td>from-afar</td>") == 3
    for text in (buckets, page(inside, "keys", "?search=named")):
        assert ">sandbox</a>" in text
        assert f">{escape(alice.organization.name)}</a>" in text
    place = Environment.objects.get(organization_id=alice.organization_id, slug="sandbox")
    number = place.pk
    place.delete()
    assert f"deleted ({number})" in page(inside, "buckets", "?search=named-")


def test_lists_are_searched_and_limited_to_an_organization(
    inside: Client, alice: User, charlie: User
) -> None:
    for user, name in ((alice, "summer-photos"), (charlie, "summer-films")):
        assert signed_in(user).post("/v1/cache/buckets", {"name": name}).status == 201

    found = page(inside, "buckets", "?search=SUMMER-p")
    of_charlie = page(
        inside, "buckets", f"?search=summer&organization_id={charlie.organization_id}"
    )

    assert ("summer-photos" in found, "summer-films" in found) == (True, False)
    assert ("summer-photos" in of_charlie, "summer-films" in of_charlie) == (False, True)
    for name in ("keys", "hosts", "origins"):
        assert "matches." in page(inside, name, "?search=%25no_such%25&organization_id=1")
    assert "No bucket matches" in page(inside, "buckets", "?organization_id=x")


def test_long_lists_are_paginated(inside: Client, cluster: Cluster) -> None:
    names = [f"paged-{number:03}" for number in range(101)]
    ClusterRows(cluster.database_url).run(
        "INSERT INTO brain_bucket (organization_id, environment_pk, name, public_name)"
        " SELECT 1, 1, name, md5(name) FROM unnest(%s::text[]) name",
        names,
    )

    seen, query, pages = "", "?search=paged", 0
    while query:
        text = page(inside, "buckets", query)
        seen, pages = seen + text, pages + 1
        _, link, rest = text.partition('<a href="?search=paged')
        following, _, _ = rest.partition('"')
        query = f"?search=paged{following}".replace("&amp;", "&") if link else ""

    assert [seen.count(f"<td>{name}</td>") for name in names] == [1] * len(names)
    assert pages == 2


def test_nodes_are_filtered(inside: Client, node: str) -> None:
    assert node in page(inside, "nodes", "?status=pending&region=us-east")
    assert node not in page(inside, "nodes", "?status=active")
    assert node not in page(inside, "nodes", "?search=no-such-node")


def test_a_decision_takes_a_reason_and_effect_once(inside: Client, alice: User, node: str) -> None:
    path = f"/admin/edgecache/nodes/{node}/quarantine/"
    assert 'name="reason"' in inside.get(path).content.decode()
    refused = inside.post(path, {"confirmed": "1", "reason": " "}).content.decode()
    assert "A reason is required" in refused

    sent = {"confirmed": "1", "reason": "unknown operator"}
    done, again = (inside.post(path, sent, follow=True).content.decode() for _ in range(2))

    assert "done for 1 of 1" in done
    assert "The node is quarantined by now" in again
    event = AuditEvent.objects.get(tag="admin:node:quarantine")
    assert (event.data["node_id"], event.data["reason"]) == (node, "unknown operator")
    assert event.organization_id == alice.organization_id


def test_staff_that_may_only_look_decides_nothing(inside: Client, node: str) -> None:
    User.objects.filter(is_staff=True).update(is_view_only=True)
    path = f"/admin/edgecache/nodes/{node}/quarantine/"
    assert path not in page(inside, "nodes")
    assert inside.get(path).status_code == 403
    assert inside.post(path, {"confirmed": "1", "reason": "x"}).status_code == 403
    assert node in page(inside, "nodes", "?status=pending")


def test_the_pages_are_for_staff_only(alice: User) -> None:
    caller = Client(headers={"authorization": f"Bearer {signed_in(alice).access_token}"})
    for name in PAGES:
        response = caller.get(f"/admin/edgecache/{name}/")
        assert response.status_code == 302
        assert "/admin/login/" in response["Location"]


def test_the_pages_report_an_unavailable_brain(inside: Client, settings: Settings) -> None:
    settings.CACHE = replace(settings.CACHE, brain_url=f"http://127.0.0.1:{free_port()}")
    for name in PAGES:
        assert "The edge cache is unavailable" in page(inside, name)
