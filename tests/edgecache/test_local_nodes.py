"""The cache's workers of this machine: created once, kept, moved if their port is in use."""

import socket
import stat
from pathlib import Path

import pytest

from common.machine.errors import StartError
from common.machine.ports import PortReservations
from common.settings.env import Env
from edgecache import conf as cache_conf
from edgecache import local_nodes
from edgecache.brain.conf import brain as brain_conf
from operations.embedded.platform_processes import REGIONS, cache_recipe
from tests.operations.embedded.support import prepare

REGION = ("eu-central", "us-east")


def test_two_platforms_that_start_concurrently_choose_different_ports(tmp_path: Path) -> None:
    with PortReservations() as one, PortReservations() as other:
        first = local_nodes.prepare(tmp_path / "one", REGION, one)
        second = local_nodes.prepare(tmp_path / "other", REGION, other)
    assert len({node.port for node in (*first, *second)}) == 4


def test_a_reservation_ends_with_its_holder(tmp_path: Path) -> None:
    with PortReservations() as one:
        port = local_nodes.prepare(tmp_path, REGION, one)[0].port
        with PortReservations() as other:
            assert not other.take(port)
    with PortReservations() as other:
        assert other.take(port)


def test_nodes_are_the_same_at_the_next_start(tmp_path: Path) -> None:
    first = prepare(tmp_path, REGION)
    assert prepare(tmp_path, REGION) == first
    assert local_nodes.load_all(tmp_path) == first
    assert [node.region for node in first] == ["eu-central", "us-east"]
    assert len({node.port for node in first}) == len({node.node_id for node in first}) == 2
    assert first[0].secret != first[1].secret


def test_only_the_owner_reads_a_nodes_secret(tmp_path: Path) -> None:
    node = prepare(tmp_path, REGION)[0]
    assert stat.S_IMODE(node.secret_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(node.folder.stat().st_mode) == 0o700
    assert node.secret not in (node.folder / "node.json").read_text()
    assert node.secret not in repr(node)


def test_a_node_whose_port_is_in_use_gets_another_and_keeps_its_id(tmp_path: Path) -> None:
    before = prepare(tmp_path, REGION)[0]
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", before.port))
        stranger.listen()
        after = prepare(tmp_path, REGION)[0]

    assert after.port != before.port
    assert (after.node_id, after.secret) == (before.node_id, before.secret)
    assert local_nodes.load(after.folder) == after


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"node_id": "x"}'])
def test_an_unreadable_node_folder_is_replaced(tmp_path: Path, text: str) -> None:
    before = prepare(tmp_path, REGION)[0]
    (before.folder / "node.json").write_text(text)
    after = prepare(tmp_path, REGION)[0]
    assert after.node_id != before.node_id
    assert local_nodes.load(after.folder) == after


def test_ids_are_time_ordered_uuids() -> None:
    ids = [local_nodes.new_node_id() for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(made.version == 7 and made.variant == "specified in RFC 4122" for made in ids)
    assert [made.int >> 80 for made in ids] == sorted(made.int >> 80 for made in ids)


def test_the_recipe_runs_brains_and_a_worker_in_each_of_two_regions(tmp_path: Path) -> None:
    chosen = {"ZBRAIN_PORT": "18081", "ZBRAIN_S3_PORT": "19000", "ZBRAIN_PROCESSES": "2"}
    recipe = cache_recipe(chosen)
    alone = cache_recipe(chosen | {"ZBRAIN_PROCESSES": "1"})
    assert recipe is not None
    assert alone is not None
    with PortReservations() as reservations:
        brains, workers = recipe.brains(reservations), recipe.workers(tmp_path, reservations)
        (brain,) = alone.brains(reservations)

    assert [each.name for each in brains] == ["brain", "brain 2"]
    assert all(each.sockets == tuple(recipe.ports()) for each in (*brains, brain))
    assert all(each.variables["ZBRAIN_METRICS_PORT"] == str(each.port) for each in brains)
    assert len({each.port for each in brains}) == 2
    assert (brain.port, brain.variables) == (18081, {"ZBRAIN_PROCESSES": "1"})
    assert [worker.name for worker in workers] == list(REGIONS)
    assert len(set(REGIONS)) == 2
    assert all(worker.needs == ("brain",) for worker in workers)
    assert recipe.ports() == [
        (18081, "ZBRAIN_PORT"),
        (19000, "ZBRAIN_S3_PORT"),
        (8083, "ZBRAIN_WORKER_PORT"),
    ]
    assert recipe.settings["ZCACHE_BRAIN_URL"] == "http://127.0.0.1:18081"
    # A secret on a command line is everybody's.
    secrets = [node.secret for node in local_nodes.load_all(tmp_path)]
    assert not [word for worker in workers for word in worker.command if word in secrets]


def test_a_second_terminal_finds_a_brain_on_other_ports(tmp_path: Path) -> None:
    recipe = cache_recipe({"ZBRAIN_PORT": "18081", "ZBRAIN_WORKER_PORT": "18083"})
    assert recipe is not None
    env = Env({}, recipe.settings)
    brain = brain_conf.read(env, data_dir=tmp_path, database_url="", is_production=False)
    assert (brain.internal.port, brain.workers.port) == (18081, 18083)
    assert brain.workers_url == "http://127.0.0.1:18083"
    assert cache_conf.read(env, brain).brain_url == "http://127.0.0.1:18081"


def test_without_the_feature_the_cache_has_no_recipe() -> None:
    assert cache_recipe({"ZFEATURES": "none"}) is None
    assert cache_recipe({"ZFEATURES": " cache "}) is not None


def test_an_invalid_port_is_refused_with_its_setting() -> None:
    with pytest.raises(StartError, match="ZBRAIN_S3_PORT must be from 1 to 65535"):
        cache_recipe({"ZBRAIN_S3_PORT": "70000"})
