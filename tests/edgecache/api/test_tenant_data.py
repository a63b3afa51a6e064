"""What an environment holds, over a real database and a real brain."""

import pytest

from accounts.models import User
from sqlgateway.models import Database
from tests.cast import signed_in
from tests.edgecache.api.brain import ScriptedBrain
from tests.edgecache.brain.s3.raw import send

PATH = "/v1/environments/{}/contents"
EMPTY = {
    "tables": 0,
    "database_bytes": 0,
    "buckets": 0,
    "objects": 0,
    "object_bytes": 0,
    "access_keys": 0,
}


@pytest.mark.usefixtures("over_a_brain")
def test_an_empty_environment_gets_no_database_by_the_question(alice: User) -> None:
    assert signed_in(alice).get(PATH.format("sandbox")).body == EMPTY
    assert not Database.objects.filter(organization_id=alice.organization_id).exists()


@pytest.mark.usefixtures("over_a_brain")
def test_buckets_objects_and_keys_are_counted(alice: User, charlie: User) -> None:
    caller = signed_in(alice)
    caller.post("/v1/cache/access-keys", {"label": "site"})
    for name in ("media", "empty"):
        caller.post("/v1/cache/buckets", {"name": name})
    for key in ("a", "b"):
        body = {"key": key}
        (url,) = caller.post("/v1/cache/buckets/media/objects/upload-urls", body).body["urls"]
        host, _, target = url.removeprefix("http://").partition("/")
        assert send(f"http://{host}", "PUT", f"/{target}", body=b"12345").status == 200
    held = {"buckets": 2, "objects": 2, "object_bytes": 10, "access_keys": 1}
    # Seen from another environment of the organization, and from no other organization.
    assert signed_in(alice, "sandbox").get(PATH.format("live")).body == EMPTY | held
    assert signed_in(charlie).get(PATH.format("live")).body == EMPTY


def test_what_cannot_be_counted_is_unknown(alice: User, brain: ScriptedBrain) -> None:
    brain.close()
    unknown = dict.fromkeys(("buckets", "objects", "object_bytes", "access_keys"))
    assert signed_in(alice).get(PATH.format("live")).body == EMPTY | unknown
