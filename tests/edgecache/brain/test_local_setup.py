"""Local development: nodes and access keys that are created before the brain starts."""

import json
import stat
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from common.crypto import decrypt
from edgecache import local_nodes
from edgecache.brain import local_setup
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.models.buckets import AccessKey, Bucket
from edgecache.brain.models.nodes import Node
from edgecache.protocol.credentials import secret_hash
from tests.operations.embedded.support import prepare

pytestmark = pytest.mark.django_db


def command(folder: Path, *words: str) -> str:
    """Run `registerlocalnode`."""
    out = StringIO()
    call_command("registerlocalnode", str(folder), *words, stdout=out)
    return out.getvalue()


def test_a_local_node_belongs_to_the_platform_and_is_active(tmp_path: Path) -> None:
    (node,) = prepare(tmp_path, ["eu-central"])
    local_setup.register(node)
    local_setup.register(node)

    row = Node.objects.get()
    assert (row.id, row.organization_id, row.status) == (node.node_id, None, "active")
    assert (row.endpoint, row.region) == (node.endpoint, "eu-central")
    assert bytes(row.secret_hash) == secret_hash(node.secret)


def test_a_node_with_a_new_port_has_a_new_endpoint(tmp_path: Path) -> None:
    one, other = prepare(tmp_path, ["eu-central", "us-east"])
    for node in (one, other):
        local_setup.register(node)
    # The two nodes swap their ports.
    for node, port in ((one, other.port), (other, one.port)):
        moved = local_nodes.save(node.folder, region=node.region, port=port, node_id=node.node_id)
        local_setup.register(moved)

    assert Node.objects.get(pk=one.node_id).endpoint == other.endpoint
    assert Node.objects.get(pk=other.node_id).endpoint == one.endpoint


def test_a_removed_node_is_registered_again(tmp_path: Path) -> None:
    (node,) = prepare(tmp_path, ["eu-central"])
    local_setup.register(node)
    Node.objects.update(status="removed", removed_at="2026-01-01T00:00:00Z", inventory_of="x")

    local_setup.register(node)

    row = Node.objects.get()
    assert (row.status, row.removed_at, row.inventory_of) == ("active", None, "")


def test_a_quarantined_node_stays_quarantined(tmp_path: Path) -> None:
    (node,) = prepare(tmp_path, ["eu-central"])
    local_setup.register(node)
    Node.objects.update(status="quarantined")
    local_setup.register(node)
    assert Node.objects.get().status == "quarantined"


def test_the_development_key_is_created_once_with_private_permissions(tmp_path: Path) -> None:
    file = tmp_path / "access-key.json"
    first = local_setup.development_access(EnvironmentKey(3, 4), file)

    assert local_setup.development_access(EnvironmentKey(3, 4), file) == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    row = AccessKey.objects.get()
    assert (row.id, row.organization_id, row.environment_pk) == (first.access_key_id, 3, 4)
    assert decrypt(row.secret) == first.secret_access_key
    assert first.secret_access_key not in row.secret + repr(first)
    assert Bucket.objects.get().name == first.bucket == "development"


def test_a_key_missing_in_the_database_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "access-key.json"
    first = local_setup.development_access(EnvironmentKey(3, 4), file)
    AccessKey.objects.all().delete()

    second = local_setup.development_access(EnvironmentKey(3, 4), file)

    assert second.access_key_id != first.access_key_id
    assert json.loads(file.read_text())["access_key_id"] == second.access_key_id


def test_the_command_prints_how_to_start_the_worker(tmp_path: Path) -> None:
    said = command(tmp_path / "node", "--region", "eu-central", "--capacity", "5GiB")
    again = command(tmp_path / "node", "--region", "us-east", "--capacity", "5GiB")

    assert f"python -m edgecache.worker --brain {settings.BRAIN.workers_url}" in said
    assert f"--capacity {5 * 2**30}" in said
    row = Node.objects.get()
    assert str(row.id) in said
    assert str(row.id) in again
    assert row.region == "us-east"
    secret = (tmp_path / "node" / "secret").read_text().strip()
    assert secret not in said


@pytest.mark.parametrize(
    "words",
    [
        ("--region", "EU Central"),
        ("--region", "eu-central", "--capacity", "0"),
        ("--region", "eu-central", "--capacity", "lots"),
        ("--region", "eu-central", "--endpoint", "nowhere"),
        (),
    ],
)
def test_a_wrong_argument_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        command(tmp_path / "node", *words)
    assert not Node.objects.exists()


def test_in_production_the_command_guesses_no_address_of_the_brain(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brain's certificate is among the brain's settings, not among the platform's."""
    settings.IS_PRODUCTION = True
    monkeypatch.delenv("ZBRAIN_WORKER_URL", raising=False)
    words = ("--region", "eu-central")
    with pytest.raises(CommandError, match="ZBRAIN_WORKER_URL is missing"):
        command(tmp_path / "node", *words)
    assert not (tmp_path / "node").exists()

    url = "https://brain.example.com:8083"
    assert f"--brain {url} " in command(tmp_path / "node", *words, "--brain", url)
