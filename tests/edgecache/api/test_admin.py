"""The cache in the admin: data of every tenant, for staff only, with a real brain."""

from dataclasses import replace

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import AuditEvent, User
from edgecache.brain.internal_api import everyone
from tests.cast import signed_in
from tests.edgecache.cluster import Cluster
from tests.ports import free_port
from tests.staff import staff_client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("over_a_brain")]
PAGES = ("nodes", "buckets", "keys")


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a staff member's browser."""
    return staff_client(monkeypatch)


def page(browser: Client, name: str, query: str = "") -> str:
    """Return a page's text."""
    response = browser.get(f"/admin/edgecache/cachesample/{name}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_staff_see_every_tenant_s_buckets_and_keys_without_secrets(
    inside: Client, alice: User, charlie: User
) -> None:
    secrets = []
    for user, name in ((alice, "alices-media"), (charlie, "charlies-media")):
        caller = signed_in(user)
        assert caller.post("/v1/cache/buckets", {"name": name}).status == 201
        made = caller.post("/v1/cache/access-keys", {"label": f"of {name}"}).body
        secrets.append(made["secret_access_key"])

    buckets, keys = page(inside, "buckets"), page(inside, "keys")

    for name in ("alices-media", "charlies-media"):
        assert name in buckets
        assert f"of {name}" in keys
    assert not any(secret in buckets + keys for secret in secrets)


def test_long_lists_are_paginated(inside: Client, cluster: Cluster) -> None:
    names = [f"paged-{number:03}" for number in range(everyone.PAGE + 1)]
    tenant = cluster.tenant()
    for name in names:
        cluster.call("POST", f"/v1/buckets?{tenant.scope}", {"name": name})

    seen = ""
    query: str | None = ""
    while query is not None:
        text = page(inside, "buckets", query)
        seen += text
        _, link, rest = text.partition('href="?after=')
        following, _, _ = rest.partition('"')
        query = f"?after={following}" if link else None

    assert [seen.count(f"<td>{name}</td>") for name in names] == [1] * len(names)


def test_a_decision_about_a_node_takes_effect_and_keeps_its_reason(
    inside: Client, alice: User
) -> None:
    wanted = {"endpoint": "http://n1.example.com", "region": "us-east", "capacity_bytes": 2**30}
    node = signed_in(alice).post("/v1/cache/nodes/register", wanted).body["node_id"]
    assert "n1.example.com" in page(inside, "nodes")
    path = f"/admin/edgecache/cachesample/nodes/{node}"

    assert (
        "A reason is required" in inside.post(f"{path}/quarantine/", follow=True).content.decode()
    )
    done = inside.post(f"{path}/quarantine/", {"reason": "unknown operator"}, follow=True)

    assert "quarantine is done" in done.content.decode()
    event = AuditEvent.objects.get(tag="admin:node:quarantine")
    assert (event.data["node_id"], event.data["reason"]) == (node, "unknown operator")


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_for_staff_only(alice: User, name: str) -> None:
    caller = Client(headers={"authorization": f"Bearer {signed_in(alice).access_token}"})
    response = caller.get(f"/admin/edgecache/cachesample/{name}/")
    assert response.status_code == 302
    assert "/admin/login/" in response["Location"]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_reports_an_unavailable_brain(
    inside: Client, settings: Settings, name: str
) -> None:
    settings.CACHE = replace(settings.CACHE, brain_url=f"http://127.0.0.1:{free_port()}")
    assert "The edge cache is unavailable" in page(inside, name)
