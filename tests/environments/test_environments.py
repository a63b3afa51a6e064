"""Environments: list, create, rename, delete; ids never change, names are unique."""

from datetime import timedelta
from typing import Any
from unittest.mock import create_autospec, patch

import pytest
import time_machine
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.models import Session, User
from audit.models import AuditEvent
from environments import environments
from environments.models import Environment
from environments.tasks import drop_expired_environments
from environments.tenant_data import TenantData
from tests.cast import Caller, signed_in

pytestmark = pytest.mark.django_db
PATH = "/v1/environments"


def test_every_member_sees_the_environments(bob: User) -> None:
    body = signed_in(bob).get(PATH).body
    assert (body["next"], body["previous"]) == (None, None)
    assert [row["id"] for row in body["results"]] == ["live", "sandbox"]
    fields = {"id", "name", "built_in", "created_at", "database_state", "database_error"}
    assert set(body["results"][0]) == fields
    assert body["results"][0]["created_at"].endswith("Z")


def test_the_list_is_paged(alice: User) -> None:
    caller = signed_in(alice)
    for number in range(5):
        environments.create(alice.organization_id, f"e{number}")
    seen: list[str] = []
    url = f"{PATH}?page_size=3"
    while url:
        page = caller.get(url.removeprefix("http://testserver")).body
        seen += [row["id"] for row in page["results"]]
        url = page["next"] or ""
    assert seen == ["live", "sandbox", "e0", "e1", "e2", "e3", "e4"]


def test_an_unknown_cursor_is_404(alice: User) -> None:
    assert signed_in(alice).get(f"{PATH}?cursor=garbage").code == "not_found"


def test_an_environment_is_created_and_read(alice: User) -> None:
    caller = signed_in(alice)
    answer = caller.post(PATH, {"id": "staging", "name": "Staging"})
    assert answer.status == 201
    assert answer.body["id"] == "staging"
    assert answer.body["built_in"] is False
    assert caller.get(f"{PATH}/staging").body == answer.body
    event = AuditEvent.objects.get(tag="api:environment:create")
    assert (event.actor_id, event.data) == (alice.pk, {"environment": "staging"})


def test_an_environment_is_created_from_another_of_the_organization(
    alice: User, charlie: User
) -> None:
    environments.create(charlie.organization_id, "charlies-own")
    caller = signed_in(alice)
    stolen = caller.post(PATH, {"name": "staging", "from": "charlies-own"})
    assert (stolen.status, stolen.code) == (404, "environment_not_found")
    answer = caller.post(PATH, {"name": "staging", "from": "live"})
    # Nothing was ever written to live, so there is nothing to copy.
    assert (answer.status, answer.body["database_state"]) == (201, "none")
    event = AuditEvent.objects.get(tag="api:environment:create")
    assert event.data == {"environment": "staging", "copied_from": "live"}


def test_a_name_alone_is_enough(alice: User) -> None:
    answer = signed_in(alice).post(PATH, {"name": "staging"})
    assert (answer.body["id"], answer.body["name"]) == ("staging", "staging")


@pytest.mark.parametrize(
    "slug", ["Staging", "a b", "-a", "a-", "ä", "a" * 64, "a.b", "a\0", "../a"]
)
def test_ids_are_slugs(alice: User, slug: str) -> None:
    answer = signed_in(alice).post(PATH, {"id": slug})
    assert answer.status == 400
    assert answer.body["errors"][0]["field"] == "id"


@pytest.mark.parametrize(
    "body", [{"id": "live"}, {"id": "x", "name": "LIVE"}, {"id": "x", "name": "Sandbox"}]
)
def test_ids_and_names_share_one_namespace(alice: User, body: dict[str, str]) -> None:
    answer = signed_in(alice).post(PATH, body)
    assert (answer.status, answer.code) == (409, "environment_taken")


@pytest.mark.parametrize(
    ("name", "same"), [("straße", "STRAẞE"), ("k", "\N{KELVIN SIGN}"), ("ω", "\N{OHM SIGN}")]
)
def test_names_are_compared_in_lower_case(alice: User, name: str, same: str) -> None:
    """As their index compares them, though these differ in upper case."""
    caller = signed_in(alice)
    assert caller.post(PATH, {"id": "one", "name": name}).status == 201
    assert caller.post(PATH, {"id": "two", "name": same}).code == "environment_taken"
    renamed = caller.call("PATCH", f"{PATH}/sandbox", {"name": same})
    assert renamed.code == "environment_taken"
    assert environments.find(alice.organization_id, same).slug == "one"


def test_two_names_with_the_same_capitals_lead_to_two_environments(alice: User) -> None:
    caller = signed_in(alice)
    for slug, name in (("one", "\N{LATIN SMALL LETTER LONG S}"), ("two", "s")):
        assert caller.post(PATH, {"id": slug, "name": name}).status == 201
        assert environments.find(alice.organization_id, name).slug == slug


def test_two_organizations_may_use_one_id(alice: User, charlie: User) -> None:
    assert signed_in(alice).post(PATH, {"id": "staging"}).status == 201
    assert signed_in(charlie).post(PATH, {"id": "staging"}).status == 201


def test_the_name_changes_and_the_id_does_not(alice: User) -> None:
    caller = signed_in(alice)
    answer = caller.call("PATCH", f"{PATH}/sandbox", {"name": "Playground"})
    assert (answer.body["id"], answer.body["name"]) == ("sandbox", "Playground")
    assert caller.call("PATCH", f"{PATH}/sandbox", {"id": "other"}).status == 400
    assert caller.call("PATCH", f"{PATH}/sandbox", {"name": "live"}).status == 409
    # Its own id and name are free to it.
    assert caller.call("PATCH", f"{PATH}/sandbox", {"name": "sandbox"}).status == 200


@pytest.mark.parametrize("slug", ["live", "sandbox"])
def test_built_in_environments_cannot_be_deleted(alice: User, slug: str) -> None:
    answer = signed_in(alice).call("DELETE", f"{PATH}/{slug}")
    assert (answer.status, answer.code) == (409, "environment_built_in")


def test_deleting_ends_the_sessions_immediately_and_frees_the_id(alice: User) -> None:
    caller = signed_in(alice)
    caller.post(PATH, {"id": "staging"})
    inside = signed_in(alice, "staging")
    assert caller.call("DELETE", f"{PATH}/staging").status == 204
    assert inside.get("/v1/whoami").code == "session_revoked"
    assert Session.objects.get(environment__slug="staging").end_reason == "environment_deleted"
    assert caller.get(f"{PATH}/staging").code == "environment_not_found"
    assert caller.call("DELETE", f"{PATH}/staging").status == 404
    assert caller.post(PATH, {"id": "staging"}).status == 201


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", PATH, {"id": "staging"}),
        ("PATCH", f"{PATH}/sandbox", {"name": "x"}),
        ("DELETE", f"{PATH}/sandbox", None),
    ],
)
@pytest.mark.parametrize("role", ["operator", "reader"])
def test_only_admins_change_environments(
    bob: User, role: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    User.objects.filter(pk=bob.pk).update(roles=[role])
    answer = signed_in(bob).call(method, path, body)
    assert (answer.status, answer.code) == (403, "permission_denied")


def test_another_organizations_environment_is_404(alice: User, charlie: User) -> None:
    signed_in(charlie).post(PATH, {"id": "charlies-own"})
    caller = signed_in(alice)
    for method in ["GET", "DELETE"]:
        assert caller.call(method, f"{PATH}/charlies-own").code == "environment_not_found"
    assert caller.call("PATCH", f"{PATH}/charlies-own", {"name": "x"}).status == 404
    assert Environment.objects.get(slug="charlies-own").deleted_at is None


def test_data_is_dropped_after_seven_days_and_never_of_a_live_one(alice: User) -> None:
    caller = signed_in(alice)
    caller.post(PATH, {"id": "staging"})
    row = Environment.objects.get(slug="staging")
    caller.call("DELETE", f"{PATH}/staging")
    now = timezone.now()
    assert environments.expired(now=now + timedelta(days=6, hours=23)) == []
    assert environments.expired(now=now + timedelta(days=7)) == [row.pk]
    live = Environment.objects.get(organization=alice.organization, slug="live")
    with patch("environments.environments.ALL", [data := create_autospec(TenantData)]):
        environments.drop(live.pk)
        assert not data.environment_dropped.called
        environments.drop(row.pk)
        environments.drop(row.pk)
        data.environment_dropped.assert_called_once_with(row.pk)
    assert not Environment.objects.filter(pk=row.pk).exists()


def test_an_environment_waits_for_its_drop_with_one_job(alice: User) -> None:
    caller = signed_in(alice)
    caller.post(PATH, {"id": "staging"})
    caller.call("DELETE", f"{PATH}/staging")
    with time_machine.travel(timezone.now() + timedelta(days=8)):
        for _ in range(3):
            drop_expired_environments(timestamp=0)
    jobs = ProcrastinateJob.objects.filter(task_name="environments.tasks.drop_environment")
    assert jobs.count() == 1


def test_anonymous_callers_see_nothing(db: None) -> None:
    assert Caller().get(PATH).code == "not_authenticated"


@pytest.mark.parametrize("slug", ["%00", "a%00b", "LIVE", "%C3%A9"])
def test_a_malformed_id_is_404(alice: User, slug: str) -> None:
    for method, body in [("GET", None), ("PATCH", {"name": "x"}), ("DELETE", None)]:
        answer = signed_in(alice).call(method, f"{PATH}/{slug}", body)
        assert (answer.status, answer.code) == (404, "environment_not_found")
