"""``/v1/environments/{environment_id}/extensions``: from a list, by the environment's own admin."""

from collections.abc import Callable

from audit.models import AuditEvent
from tests.cast import Caller

SignIn = Callable[[str], Caller]
PATH = "/v1/environments/live/extensions"


def test_an_extension_is_installed_used_and_removed(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    listed = {one["name"]: one for one in admin.get(PATH).body["results"]}
    assert {"pg_trgm", "citext", "vector", "hstore"} <= set(listed)
    assert listed["hstore"]["is_installed"] is False
    first, second = (admin.post(PATH, {"name": "hstore"}) for _ in range(2))
    assert (first.status, second.status) == (201, 201)
    assert first.body == second.body
    assert first.body["is_installed"] is True
    used = admin.post("/v1/sql", {"query": "SELECT 'a=>1'::hstore -> 'a' AS one"})
    assert used.body["rows"] == [{"one": "1"}]
    assert admin.get("/v1/sql/schema").body["functions"] == []
    assert admin.call("DELETE", f"{PATH}/hstore").status == 204
    assert admin.call("DELETE", f"{PATH}/hstore").code == "extension_not_found"
    tags = AuditEvent.objects.filter(tag__startswith="sql:extension").values_list("tag", flat=True)
    assert set(tags) == {"sql:extension:install", "sql:extension:remove"}


def test_an_extension_that_is_used_is_not_removed(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    admin.post(PATH, {"name": "citext"})
    admin.post("/v1/sql", {"query": "CREATE TABLE people (name citext)"})
    assert admin.call("DELETE", f"{PATH}/citext").code == "extension_in_use"


def test_every_listed_extension_can_be_installed(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    names = [one["name"] for one in admin.get(PATH).body["results"]]
    assert [admin.post(PATH, {"name": name}).status for name in names] == [201] * len(names)


def test_nothing_outside_the_list_is_installed(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    for name in ("plpython3u", "dblink", 'citext"; DROP SCHEMA public; --', ""):
        assert admin.post(PATH, {"name": name}).status == 400
    assert admin.post("/v1/environments/nonesuch/extensions", {"name": "citext"}).status == 404


def test_a_reader_and_an_operator_install_nothing(signed_in_as: SignIn) -> None:
    assert signed_in_as("operator").post(PATH, {"name": "citext"}).status == 403
    assert signed_in_as("reader").get(PATH).status == 403
