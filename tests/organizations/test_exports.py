"""An export holds everything of one organization, no secret, and is for its admins alone."""

import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import time_machine
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from common import archives
from common.principals import Scope
from edgecache.api import buckets, client
from environments import environments
from organizations import tasks
from organizations.models import OrganizationExport
from outbox.models import Delivery
from tests.cast import Answer, signed_in
from tests.deploy.tools import program
from tests.edgecache.cluster import Cluster
from tests.sqlgateway.databases.copies import common_schemas

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
PATH = "/v1/organization/exports"
SECRET = "an-origin-s-own-secret"


@pytest.fixture(autouse=True)
def over_a_brain(cluster: Cluster, settings: Settings, tmp_path: Path) -> Iterator[None]:
    """Connect the platform to the brain; write exports to a folder of the test's."""
    settings.CACHE = replace(
        settings.CACHE,
        brain_url=f"http://127.0.0.1:{cluster.internal_port}",
        s3_url=cluster.url,
        secret=cluster.secret,
        is_enabled=True,
    )
    settings.ORGANIZATIONS = replace(settings.ORGANIZATIONS, export_dir=str(tmp_path / "exports"))
    yield
    client._sessions.clear()


def exported(user: User) -> str:
    """Have the user's organization exported; return the export's id."""
    answer = signed_in(user).post(PATH)
    assert (answer.status, answer.body["state"]) == (201, "queued")
    tasks.write_export(answer.body["id"])
    return str(answer.body["id"])


def file_of(number: str) -> Path:
    """Return the path of an export's archive."""
    return Path(settings.ORGANIZATIONS.export_dir) / f"{number}.zip"


def content(answer: Answer) -> zipfile.ZipFile:
    """Return the archive of an answer."""
    raw: Any = answer.raw
    return zipfile.ZipFile(io.BytesIO(b"".join(raw.streaming_content)))


def lines(archive: zipfile.ZipFile, name: str) -> list[Any]:
    """Return a file's records."""
    return [json.loads(line) for line in archive.read(name).splitlines()]


def filled(user: User, text: str) -> None:
    """Give the user's organization a table, a bucket, an origin with a secret, and keys."""
    query = f"CREATE TABLE notes AS SELECT '{text}'::text AS body"
    assert signed_in(user).post("/v1/sql", {"query": query}).status == 200
    place = Scope(user.organization_id, environments.find(user.organization_id, "live").pk)
    buckets.create(place, {"name": "media"})
    config = {"url": "https://origin.example.com/"}
    body = {"name": "site", "kind": "http", "config": config, "secret": {"authorization": SECRET}}
    caller = signed_in(user)
    assert caller.post("/v1/cache/access-keys", {"access": "write"}).status == 201
    assert caller.post("/v1/cache/origins", body).status == 201
    signed_in(user).post("/v1/api-keys", {"name": "nightly", "role": "reader"})
    hook = {"url": "https://hooks.example.com/a", "events": ["member.added"]}
    assert signed_in(user).post("/v1/webhooks", hook).status == 201


def test_an_admin_gets_everything_of_the_organization_and_of_no_other(
    alice: User, bob: User, charlie: User
) -> None:
    filled(alice, "hers")
    filled(charlie, "his")
    number = exported(alice)
    shown = signed_in(alice).get(f"{PATH}/{number}").body
    assert (shown["state"], shown["failure"], shown["missing"]) == ("ready", "", [])
    answer = signed_in(alice).get(f"{PATH}/{number}/archive")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "attachment" in answer.headers["Content-Disposition"]
    archive = content(answer)
    assert {row["email"] for row in lines(archive, "members.ndjson")} == {alice.email, bob.email}
    assert [row["slug"] for row in lines(archive, "environments.ndjson")] == ["live", "sandbox"]
    assert [row["name"] for row in lines(archive, "cache/live/buckets.ndjson")] == ["media"]
    assert [row["name"] for row in lines(archive, "api_keys.ndjson")] == ["nightly"]
    (hook,) = lines(archive, "webhooks.ndjson")
    assert (hook["url"], hook["events"]) == ("https://hooks.example.com/a", ["member.added"])
    assert hook.keys().isdisjoint({"secret", "previous_secret"})
    assert archive.read("databases/live.dump").startswith(b"PGDMP")
    assert "databases/sandbox.dump" not in archive.namelist()
    tags = {row["tag"] for row in lines(archive, "audit.ndjson")}
    assert "api:organization:export" in tags
    assert json.loads(archive.read("manifest.json"))["missing"] == []
    everything = b"".join(archive.read(name) for name in archive.namelist())
    assert charlie.email.encode() not in everything
    for secret in (SECRET, "password", "digest"):
        assert secret.encode() not in everything
    assert AuditEvent.objects.filter(tag="api:organization:download").count() == 1
    assert Delivery.objects.filter(template="organization_exported").count() == 1


def test_the_dump_is_restored_with_pg_restore(alice: User, tmp_path: Path) -> None:
    filled(alice, "hers")
    with zipfile.ZipFile(file_of(exported(alice))) as archive:
        dump = Path(archive.extract("databases/live.dump", tmp_path))
    arguments = (str(alice.organization_id), "sandbox", str(dump), "--all-to-admin")
    assert signed_in(alice, environment="sandbox").post("/v1/sql", {"query": "SELECT 1"})
    call_command("restoreenvironment", *arguments)
    answer = signed_in(alice, environment="sandbox").post(
        "/v1/sql", {"query": "SELECT body FROM notes"}
    )
    assert answer.body["rows"] == [{"body": "hers"}]


def test_the_manifest_names_a_dump_that_cannot_be_restored(alice: User) -> None:
    expired = {"query": common_schemas.EXPIRED}
    assert signed_in(alice).post("/v1/sql", expired).status == 200
    number = exported(alice)

    [sentence] = signed_in(alice).get(f"{PATH}/{number}").body["missing"]

    complaint = common_schemas.EXPIRED_COMPLAINT
    assert sentence == f"The database of live: The dump cannot be restored: {complaint}."


def test_the_line_of_the_archive_copies_the_objects(
    alice: User, charlie: User, tmp_path: Path
) -> None:
    program("rclone", package="rclone")
    filled(alice, "hers")
    filled(charlie, "his")
    caller = signed_in(alice)
    key = caller.post("/v1/cache/access-keys", {"access": "write"}).body
    made = {"aws_access_key_id": key["access_key_id"]}
    made["aws_secret_access_key"] = key["secret_access_key"]
    s3 = boto3.client("s3", endpoint_url=key["endpoint"], region_name="auto", **made)
    s3.put_object(Bucket="media", Key="2026/a b.txt", Body=b"hers")
    archive = content(caller.get(f"{PATH}/{exported(alice)}/archive"))
    text = archive.read("cache/README.txt").decode()
    (line,) = [line for line in text.splitlines() if line.endswith(" objects/live")]
    for name, value in made.items():
        line = line.replace(f"{name.upper()}=…", f"{name.upper()}={value}")
    nothing_of_ours = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(["sh", "-c", line], check=True, timeout=60, cwd=tmp_path, env=nothing_of_ours)
    copied = [each for each in (tmp_path / "objects").rglob("*") if each.is_file()]
    assert copied == [tmp_path / "objects/live/media/2026/a b.txt"]
    assert copied[0].read_bytes() == b"hers"


def test_only_admins_with_a_recent_proof_get_it(alice: User, bob: User, charlie: User) -> None:
    number = exported(alice)
    assert signed_in(bob).post(PATH).code == "permission_denied"
    for path in (PATH, f"{PATH}/{number}", f"{PATH}/{number}/archive"):
        assert signed_in(bob).get(path).code == "permission_denied"
    assert signed_in(charlie).get(f"{PATH}/{number}/archive").code == "export_not_found"
    assert signed_in(charlie).call("DELETE", f"{PATH}/{number}").code == "export_not_found"
    caller = signed_in(alice)
    Session.objects.update(auth_time=timezone.now() - timedelta(hours=1))
    assert caller.post(PATH).code == "step_up_required"
    assert caller.get(f"{PATH}/{number}/archive").code == "step_up_required"
    assert caller.get(f"{PATH}/{number}").status == 200
    assert [export["id"] for export in caller.get(PATH).body["results"]] == [number]


def test_there_is_one_at_a_time_and_few_a_day(alice: User, charlie: User) -> None:
    caller = signed_in(alice)
    number = caller.post(PATH).body["id"]
    assert caller.post(PATH).code == "export_under_way"
    assert caller.call("DELETE", f"{PATH}/{number}").code == "export_under_way"
    assert caller.get(f"{PATH}/{number}/archive").code == "export_gone"
    assert signed_in(charlie).post(PATH).status == 201
    for _ in range(3):
        caller.post(PATH)
    assert caller.post(PATH).code == "requested_too_often"


def test_it_is_deleted_by_an_admin_or_after_its_time(alice: User) -> None:
    first, second = exported(alice), exported(alice)
    assert signed_in(alice).call("DELETE", f"{PATH}/{first}").status == 204
    assert signed_in(alice).get(f"{PATH}/{first}").code == "export_not_found"
    with time_machine.travel(timezone.now() + timedelta(days=4)):
        tasks.maintain_exports(0)
    assert not file_of(second).exists()
    assert signed_in(alice).get(f"{PATH}/{second}/archive").code == "export_gone"


def test_one_that_is_too_large_or_too_slow_fails_and_leaves_no_file(
    alice: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(alice, "x" * 1000)
    for bytes_, timeout_s, said in ((100, 1800, "larger"), (2**30, 0, "too long")):
        settings.ORGANIZATIONS = replace(settings.ORGANIZATIONS, export_disk_bytes=bytes_)
        monkeypatch.setattr("organizations.exports.TIMEOUT_S", timeout_s)
        row = OrganizationExport.objects.get(pk=exported(alice))
        assert row.state == "failed"
        assert said in row.failure
        assert not list(Path(settings.ORGANIZATIONS.export_dir).iterdir())


def test_the_exports_of_all_organizations_share_a_limit(
    alice: User, charlie: User, settings: Settings
) -> None:
    filled(alice, "x" * 1000)
    first = OrganizationExport.objects.get(pk=exported(alice))
    # Space for half of another one of the same size, because two are written concurrently.
    disk_bytes = 2 * first.size_bytes
    settings.ORGANIZATIONS = replace(settings.ORGANIZATIONS, export_disk_bytes=disk_bytes)
    second = OrganizationExport.objects.get(pk=exported(alice))
    assert (second.state, "larger" in second.failure) == ("failed", True)
    settings.ORGANIZATIONS = replace(settings.ORGANIZATIONS, export_disk_bytes=first.size_bytes)
    refused = signed_in(charlie).post(PATH)
    assert (refused.status, refused.code) == (503, "exports_full")
    assert refused.raw["Retry-After"] == "3600"
    assert not OrganizationExport.objects.filter(organization=charlie.organization).exists()
    # What is over takes no room, and neither does what is deleted.
    assert signed_in(alice).call("DELETE", f"{PATH}/{first.pk}").status == 204
    assert signed_in(charlie).post(PATH).status == 201


def test_one_whose_process_was_killed_holds_up_no_other(alice: User) -> None:
    number = signed_in(alice).post(PATH).body["id"]
    long_ago = timezone.now() - timedelta(days=1)
    rows = OrganizationExport.objects.filter(pk=number)
    rows.update(state="running", started_at=long_ago)
    path = file_of(number)
    left = (path, archives.unfinished_of(path))
    path.parent.mkdir(exist_ok=True)
    for each in left:
        each.write_bytes(b"what it has written")
    assert signed_in(alice).post(PATH).status == 201
    assert rows.get().state == "failed"
    assert not any(each.exists() for each in left)


def test_one_organization_does_not_take_the_disk_of_all(alice: User, charlie: User) -> None:
    first = exported(alice)
    exported(alice)
    refused = signed_in(alice).post(PATH)
    assert (refused.status, refused.code) == (409, "too_many_exports")
    assert signed_in(charlie).post(PATH).status == 201
    assert signed_in(alice).call("DELETE", f"{PATH}/{first}").status == 204
    assert signed_in(alice).post(PATH).status == 201


def test_the_file_is_private(alice: User) -> None:
    path = file_of(exported(alice))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_an_operator_exports_it_to_a_file(
    alice: User, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "all.zip"
    arguments = ("exportorganization", str(alice.organization_id), "--output", str(file))
    call_command(*arguments, "--json")
    assert json.loads(capsys.readouterr().out)["size_bytes"] == file.stat().st_size
    assert "members.ndjson" in zipfile.ZipFile(file).namelist()
    with pytest.raises(CommandError, match="exists"):
        call_command(*arguments)
