"""What a member created in the cache, when it is no admin any more."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from accounts.models import User
from audit.models import AuditEvent
from edgecache.api import access_keys, client
from edgecache.tasks import revoke_keys_created_by
from oauth.memberships import derived_roles
from organizations import staff_access
from tests import inbox
from tests.accounts.profile.support import signed_up, user_of
from tests.accounts.reclaim.doors import DOORS
from tests.cast import Caller, member, signed_in, with_proven_address
from tests.edgecache.api.s3_clients import refused, s3

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("over_a_brain")]

ORIGIN = {"name": "site", "kind": "http", "config": {"url": "https://origin.example.com/"}}
NODE = {"endpoint": "http://dora.example.com", "region": "us-east", "capacity_bytes": 2**30}


@pytest.fixture
def dora(alice: User) -> User:
    """Return a second admin of Alice's organization, which neither is the last one of."""
    with_proven_address(alice)
    return with_proven_address(member(alice.organization, "dora@example.com"))


def demote(alice: Caller, dora: User) -> None:
    answer = alice.call("PATCH", f"/v1/members/{dora.pk}", {"roles": ["operator"]})
    assert answer.status == 200


def disable(alice: Caller, dora: User) -> None:
    answer = alice.call("PATCH", f"/v1/members/{dora.pk}", {"disabled": True})
    assert answer.status == 200


def remove(alice: Caller, dora: User) -> None:
    assert alice.call("DELETE", f"/v1/members/{dora.pk}").status == 200


def disable_by_staff(_alice: Caller, dora: User) -> None:
    assert staff_access.set_active(dora, is_active=False, by="staff", now=timezone.now())


def lose_derived_role(_alice: Caller, dora: User) -> None:
    derived_roles.recompute(None, dora, reason="github", now=timezone.now())


ENDINGS = (demote, disable, remove, disable_by_staff, lose_derived_role)


@pytest.mark.parametrize("end", ENDINGS)
def test_access_keys_end_with_their_creators_right_to_create_them(
    alice: User,
    dora: User,
    end: Callable[[Caller, User], None],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    caller = signed_in(alice)
    caller.post("/v1/cache/buckets", {"name": "media"})
    if end is lose_derived_role:
        dora.roles, dora.derived_roles = ["reader"], ["admin"]
        dora.save()
    # In each environment; a colleague's stay.
    hers = [s3(signed_in(dora)), s3(signed_in(dora, "sandbox"), "read")]
    theirs = s3(caller)
    with django_capture_on_commit_callbacks(execute=True):
        end(caller, dora)
    for store in hers:
        assert refused(store.list_buckets) == "InvalidAccessKeyId"
        store.close()
    assert theirs.list_objects_v2(Bucket="media")["KeyCount"] == 0
    theirs.close()
    assert AuditEvent.objects.filter(tag="system:access_key:delete").count() == 2


def test_a_key_created_during_the_demotion_does_not_survive_it(
    alice: User, dora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, hers = signed_in(alice), signed_in(dora)
    send = client._send

    def and_meanwhile(method: str, path: str, *rest: Any) -> Any:
        answer = send(method, path, *rest)
        if (method, path) == ("POST", "/v1/access-keys"):
            monkeypatch.undo()
            demote(caller, dora)
        return answer

    monkeypatch.setattr(client, "_send", and_meanwhile)
    assert hers.post("/v1/cache/access-keys", {"label": "late"}).code == "session_revoked"
    assert caller.get("/v1/cache/access-keys").body["results"] == []


def test_access_keys_end_with_the_address_of_their_creator(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    stranger = signed_up("victim@example.com")
    store, come_back = s3(stranger), DOORS["link"]("victim@example.com")
    with django_capture_on_commit_callbacks(execute=True):
        assert come_back().status == 201
    assert refused(store.list_buckets) == "InvalidAccessKeyId"
    store.close()


def test_a_key_created_while_its_creator_loses_the_address_does_not_survive_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stranger = signed_up("victim@example.com")
    come_back, user = DOORS["link"]("victim@example.com"), user_of("victim@example.com")
    send = client._send

    def and_meanwhile(method: str, path: str, *rest: Any) -> Any:
        answer = send(method, path, *rest)
        if (method, path) == ("POST", "/v1/access-keys"):
            monkeypatch.undo()
            assert come_back().status == 201
        return answer

    monkeypatch.setattr(client, "_send", and_meanwhile)
    assert stranger.post("/v1/cache/access-keys", {"label": "late"}).code == "session_revoked"
    colleague = signed_in(member(user.organization, "colleague@example.com"))
    assert colleague.get("/v1/cache/access-keys").body["results"] == []


def test_keys_end_later_if_the_cache_is_unavailable_and_newer_ones_stay(
    alice: User,
    dora: User,
    settings: Settings,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    caller, old, demoted_at = signed_in(alice), s3(signed_in(dora)), None
    reachable = settings.CACHE
    settings.CACHE = replace(reachable, brain_url="http://127.0.0.1:9")
    with django_capture_on_commit_callbacks(execute=True):
        answer = caller.call("PATCH", f"/v1/members/{dora.pk}", {"roles": ["reader"]})
    assert answer.body["created"]["is_complete"] is False
    settings.CACHE, demoted_at = reachable, timezone.now()
    client.breaker.succeeded()
    caller.call("PATCH", f"/v1/members/{dora.pk}", {"roles": ["admin"]})
    new = s3(signed_in(dora))
    revoke_keys_created_by(
        organization_id=dora.organization_id, user_id=str(dora.pk), until=demoted_at.isoformat()
    )
    assert refused(old.list_buckets) == "InvalidAccessKeyId"
    assert new.list_buckets()["Buckets"] == []
    for store in (old, new):
        store.close()


def test_the_answer_and_the_mail_list_what_has_ended_and_what_stays(
    alice: User, dora: User
) -> None:
    caller, hers = signed_in(alice), signed_in(dora)
    key = hers.post("/v1/cache/access-keys", {"label": "nightly"}).body["access_key_id"]
    hers.post("/v1/api-keys", {"name": "ci", "role": "reader"})
    hers.post("/v1/invitations", {"email": "eve@example.com", "roles": ["reader"]})
    hook = {"url": "https://hooks.example.com/a?token=secret", "events": ["member.added"]}
    assert hers.post("/v1/webhooks", hook).status == 201
    assert hers.post("/v1/cache/origins", ORIGIN).body["created_by"] == dora.email
    assert hers.post("/v1/cache/nodes/register", NODE).status == 201
    path = f"/v1/members/{dora.pk}"
    before = caller.get(f"{path}/created").body
    done = caller.call("DELETE", path)
    assert done.status == 200
    assert done.body == {"created": before}
    ends = {(each["kind"], each["name"], each["environment"]) for each in before["ends"]}
    assert ends == {
        ("access_key", "nightly", "live"),
        ("api_key", "ci", "live"),
        ("invitation", "eve@example.com", None),
    }
    assert key in {each["id"] for each in before["ends"]}
    stays = {(each["kind"], each["name"]) for each in before["stays"]}
    assert stays == {
        ("webhook", "hooks.example.com"),
        ("origin", "site"),
        ("node", "http://dora.example.com:80"),
    }
    mails = {mail["template"]: mail["context"] for mail in inbox.messages("mail")}
    assert mails["access_key_created"]["name"] == "nightly"
    for name in ("access key nightly", "API key ci", "webhook hooks.example.com", "origin site"):
        assert name in mails["account_removed"]["created"]


def test_lists_name_the_creator(alice: User, dora: User) -> None:
    hers = signed_in(dora)
    hers.post("/v1/cache/access-keys", {})
    hers.post("/v1/cache/origins", ORIGIN)
    node = hers.post("/v1/cache/nodes/register", NODE | {"endpoint": "http://d2.example.com"}).body
    caller = signed_in(alice)
    for path in ("access-keys", "origins"):
        (row,) = caller.get(f"/v1/cache/{path}").body["results"]
        assert row["created_by"] == dora.email
    assert caller.get(f"/v1/cache/nodes/{node['node_id']}").body["created_by"] == dora.email


def test_what_a_member_created_is_for_its_admins_only(
    alice: User, bob: User, charlie: User, dora: User
) -> None:
    path = f"/v1/members/{dora.pk}/created"
    assert signed_in(bob).get(path).status == 403
    assert signed_in(charlie).get(path).code == "member_not_found"
    shown = signed_in(alice).get(f"/v1/members/{bob.pk}/created").body
    assert shown == {"ends": [], "stays": [], "is_complete": True}


def test_another_organizations_keys_of_a_creator_do_not_end(alice: User, charlie: User) -> None:
    store = s3(signed_in(charlie))
    access_keys.revoke_created_by(alice.organization_id, charlie.pk, until=timezone.now())
    assert store.list_buckets()["Buckets"] == []
    store.close()
