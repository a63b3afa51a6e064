"""Open transactions of several clusters, of which one has all of a process."""

from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.clusters.placements import PlacementCache
from tests import cast
from tests.sqlgateway import support
from tests.sqlgateway.kept import KEPT
from tests.sqlgateway.transactions.support import PATH, begin


def member_of(name: str) -> cast.Caller:
    """Return the signed-in admin of an organization with a database."""
    organization = cast.organization(name)
    KEPT.give(support.caller(organization).scope)
    return cast.signed_in(cast.member(organization, f"{name}@example.com", role="admin"))


def test_a_cluster_has_all_transactions_of_a_process_but_keeps_no_other_out(
    databases: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, charlie, dora = (member_of(name) for name in ("alice", "charlie", "dora"))
    with override_settings(SQL=replace(settings.SQL, running=6)):
        begin(alice)
        begin(charlie)
        refused = dora.post(PATH, {})
        assert (refused.status, refused.code) == (503, "sql_busy")

        # Dora's database is on another cluster.
        monkeypatch.setattr(PlacementCache, "cluster_of", lambda *_: 2**40)
        assert begin(dora).run("SELECT 1 AS one").body["rows"] == [{"one": 1}]
