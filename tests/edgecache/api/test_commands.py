"""The cache's management commands: calls, output and exit codes."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from audit.models import AuditEvent
from edgecache.api.errors import CacheUnavailable
from edgecache.tenant_data import CacheData
from environments import environments
from tests.edgecache.api.brain import METRICS, STATUS, ScriptedBrain
from tests.edgecache.api.test_endpoints import MINE, node

COUNTS = {"objects_purged": 3, "bytes_freed": 30, "nodes_affected": 2}


def said(*arguments: str, **options: Any) -> str:
    """Run a command; return its output."""
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def ended(*arguments: str) -> tuple[int, str, str]:
    """Run a command; return its exit status, its output and its sentence of an error."""
    out = StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=StringIO())
    except CommandError as exc:
        return exc.returncode, out.getvalue(), str(exc)
    return 0, out.getvalue(), ""


def recorded() -> list[tuple[str, int | None, Any]]:
    """Return what the audit trail says that operators did."""
    events = AuditEvent.objects.filter(tag__startswith="cli:").order_by("id")
    return [(event.tag, event.organization_id, event.data) for event in events]


def test_cachestatus_prints_text_or_json(brain: ScriptedBrain) -> None:
    assert "hit_ratio" in said("cachestatus")
    assert json.loads(said("cachestatus", "--json")) == {"status": STATUS, "metrics": METRICS}


@pytest.mark.parametrize("command", ["cachestatus", "cachenodes"])
def test_an_unavailable_brain_is_reported_with_an_exit_code(
    brain: ScriptedBrain, command: str
) -> None:
    brain.close()
    with pytest.raises(CommandError, match="unavailable") as caught:
        call_command(command)
    assert caught.value.returncode == 1


@pytest.mark.django_db
def test_cachenodes_lists_and_approves(brain: ScriptedBrain) -> None:
    brain.say("GET /v1/nodes", 200, {"nodes": [node(MINE, 7)]})
    brain.say(f"GET /v1/nodes/{MINE}", 200, node(MINE, 7))
    brain.say(f"POST /v1/nodes/{MINE}/approve", 200, {})
    assert "eu-central" in said("cachenodes")
    said("cachenodes", "--approve", MINE)
    assert brain.last("POST").path == f"/v1/nodes/{MINE}/approve"
    assert recorded() == [("cli:node:approve", 7, {"node_id": MINE})]
    with pytest.raises(CommandError, match="no such node"):
        call_command("cachenodes", "--approve", "nonsense")


@pytest.mark.django_db
def test_drainnode_drains_or_removes(brain: ScriptedBrain) -> None:
    brain.say(f"GET /v1/nodes/{MINE}", 200, node(MINE, 7))
    brain.say(f"POST /v1/nodes/{MINE}/drain", 200, {})
    brain.say(f"DELETE /v1/nodes/{MINE}", 204, None)
    assert "draining" in said("drainnode", MINE)
    assert "removed" in said("drainnode", MINE, "--remove")
    tags = [tag for tag, *_ in recorded()]
    assert tags == ["cli:node:drain", "cli:node:delete"]


def test_purgecache_acts_in_one_environment(brain: ScriptedBrain, alice: User) -> None:
    brain.say("POST /v1/purge", 200, COUNTS)
    whose = f"--organization={alice.organization_id}"
    assert "3 objects, 30 bytes, 2 nodes." in said("purgecache", whose, "media/a", "media/b")
    place = environments.find(alice.organization_id, "live")
    assert brain.last("POST").body == {
        "organization_id": alice.organization_id,
        "environment_pk": place.pk,
        "keys": ["media/a", "media/b"],
    }
    assert recorded() == [("cli:cache:purge", alice.organization_id, COUNTS)]
    said(
        "purgecache", whose, "--environment=sandbox", "--tag=media/a", "--tag=media/b", "--preview"
    )
    assert len(recorded()) == 1
    assert brain.last("POST").body["tags"] == ["media/a", "media/b"]
    assert brain.last("POST").body["preview"] is True
    with pytest.raises(CommandError, match="--all"):
        call_command("purgecache", whose)
    with pytest.raises(CommandError, match="environment"):
        call_command("purgecache", whose, "--environment=none", "--all")


def test_warmcache_sends_batches(brain: ScriptedBrain, alice: User) -> None:
    brain.say(
        "POST /v1/warm", 200, {"warmed": 19, "failed": [{"key": "media/1", "code": "no_such_key"}]}
    )
    keys = [f"media/{number}" for number in range(40)]
    words = ("warmcache", f"--organization={alice.organization_id}", *keys)
    status, printed, sentence = ended(*words)
    assert (status, printed) == (4, "38 fetched, 2 failed.\n")
    assert sentence == "2 could not be fetched."
    brain.say("POST /v1/warm", 200, {"warmed": 20, "failed": []})
    assert ended(*words) == (0, "40 fetched, 0 failed.\n", "")


def test_warmcache_says_what_it_had_fetched_when_the_brain_went_away(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([{"warmed": 20, "failed": 0}])

    def warm(*_: object) -> dict[str, int]:
        try:
            return next(answers)
        except StopIteration:
            raise CacheUnavailable from None

    monkeypatch.setattr("edgecache.api.objects.warm", warm)
    keys = [f"media/{number}" for number in range(50)]
    words = ("warmcache", f"--organization={alice.organization_id}", *keys)
    status, printed, sentence = ended(*words)
    assert (status, printed) == (4, "20 fetched, 0 failed.\n")
    assert "30 were not asked for" in sentence
    assert ended(*words)[0] == 1


def test_a_deleted_environment_is_disabled_and_later_dropped(
    brain: ScriptedBrain, alice: User
) -> None:
    place = environments.create(alice.organization_id, "staging")
    brain.say("GET /v1/access-keys", 200, {"access_keys": [{"access_key_id": "ZK12"}]})
    brain.say("DELETE /v1/access-keys/ZK12", 204, None)
    brain.say("GET /v1/buckets", 200, {"buckets": [{"id": 5, "name": "media", "origin_id": None}]})
    brain.say("PATCH /v1/buckets/5", 200, {})
    brain.say("DELETE /v1/buckets/5/signed-links", 204, None)
    from edgecache.tasks import close_environment

    close_environment(environment_pk=place.pk)
    deleted = [call.path for call in brain.calls if call.method == "DELETE"]
    assert deleted == ["/v1/access-keys/ZK12", "/v1/buckets/5/signed-links"]
    assert brain.last("PATCH").body == {"is_public": False}
    assert brain.last("PATCH").query["environment_pk"] == str(place.pk)

    path = f"/v1/environments/{alice.organization_id}/{place.pk}"
    brain.say(f"DELETE {path}", 204, None)
    CacheData().environment_dropped(place.pk)
    assert brain.last("DELETE").path == path
