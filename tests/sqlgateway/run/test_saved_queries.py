"""Saved queries: shared in an organization, changed by one version at a time."""

from typing import Any

import pytest

from audit.models import AuditEvent
from sqlgateway.run import saved_queries
from tests import cast

PATH = "/v1/sql/queries"

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> dict[str, cast.Caller]:
    """Return Alice the admin, Bob the operator and Eve the reader of one organization."""
    home = cast.organization()
    roles = {"alice": "admin", "bob": "operator", "eve": "reader"}
    return {
        name: cast.signed_in(cast.member(home, f"{name}@example.com", role=role))
        for name, role in roles.items()
    }


def save(caller: cast.Caller, name: str = "Orders", query: str = "SELECT 1") -> Any:
    answer = caller.post(PATH, {"name": name, "query": query})
    assert answer.status == 201, answer.body
    return answer.body


def test_what_one_member_saves_all_find_and_a_stranger_does_not(team: Any) -> None:
    saved = save(team["bob"], query="SELECT 1;\n")
    stranger = cast.signed_in(cast.member(cast.organization("Charlie's"), "charlie@example.org"))

    for caller in team.values():
        assert caller.get(PATH).body["results"] == [saved]
        assert caller.get(f"{PATH}/{saved['id']}").body == saved
    assert (saved["query"], saved["updated_by"]) == ("SELECT 1;\n", "bob@example.com")
    assert stranger.get(PATH).body["results"] == []
    # Another organization may use the name.
    save(stranger)


def test_a_reader_changes_nothing(team: Any) -> None:
    saved = save(team["alice"])
    own = f"{PATH}/{saved['id']}"
    eve = team["eve"]

    assert eve.post(PATH, {"name": "x", "query": "SELECT 2"}).status == 403
    assert eve.call("PATCH", own, {"version": 1, "query": "SELECT 2"}).status == 403
    assert eve.call("DELETE", own).status == 403
    assert eve.get(own).body == saved


def test_a_change_of_an_outdated_version_is_refused(team: Any) -> None:
    own = f"{PATH}/{save(team['alice'])['id']}"

    changed = team["bob"].call("PATCH", own, {"version": 1, "query": "SELECT 2"})
    late = team["alice"].call("PATCH", own, {"version": 1, "name": "Mine"})

    assert (changed.body["version"], changed.body["updated_by"]) == (2, "bob@example.com")
    assert (late.status, late.code) == (409, "saved_query_changed")
    assert (late.body["version"], late.body["updated_by"]) == (2, "bob@example.com")
    assert team["eve"].get(own).body == changed.body


def test_names_differ_by_more_than_case(team: Any) -> None:
    save(team["alice"])
    other = save(team["alice"], "Customers")

    again = team["bob"].post(PATH, {"name": "ORDERS", "query": "SELECT 2"})
    renamed = team["bob"].call("PATCH", f"{PATH}/{other['id']}", {"version": 1, "name": "orders"})

    assert (again.status, again.code) == (409, "saved_query_taken")
    assert (renamed.status, renamed.code) == (409, "saved_query_taken")


def test_an_organization_has_a_limited_number(team: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_queries, "MAX_SAVED", 1)
    saved = save(team["alice"])

    more = team["alice"].post(PATH, {"name": "More", "query": "SELECT 2"})
    deleted = team["alice"].call("DELETE", f"{PATH}/{saved['id']}")

    assert (more.status, more.code) == (409, "too_many_saved_queries")
    assert deleted.status == 204
    assert team["alice"].get(f"{PATH}/{saved['id']}").code == "saved_query_not_found"
    save(team["alice"], "More")


def test_the_audit_trail_names_the_query_and_not_its_text(team: Any) -> None:
    own = f"{PATH}/{save(team['alice'], query='SELECT 4711')['id']}"
    team["alice"].call("PATCH", own, {"version": 1, "query": "SELECT 4712"})
    team["alice"].call("DELETE", own)

    events = AuditEvent.objects.filter(tag__startswith="sql:query").order_by("pk")

    assert [event.tag for event in events] == [
        "sql:query:save",
        "sql:query:update",
        "sql:query:delete",
    ]
    assert all("Orders" in str(event.data) for event in events)
    assert "471" not in str([event.data for event in events])
