"""A bucket's settings are not taken back by a page that was read before them."""

from functools import partial
from typing import Any

import pytest

from accounts.models import User
from audit.models import AuditEvent
from tests.cast import Answer, Caller, signed_in
from tests.parallel import at_once

pytestmark = [pytest.mark.usefixtures("over_a_brain"), pytest.mark.django_db(transaction=True)]
PATH = "/v1/cache/buckets/site"


@pytest.fixture
def owner(alice: User) -> Caller:
    """Return Alice, who has a public bucket."""
    caller = signed_in(alice)
    made = caller.post("/v1/cache/buckets", {"name": "site", "is_public": True})
    assert made.status == 201, made.body
    return caller


def change(owner: Caller, body: dict[str, Any], version: str) -> Answer:
    return owner.call("PATCH", PATH, body, IF_MATCH=version)


def test_a_bucket_that_was_made_private_is_not_made_public_by_an_older_page(owner: Caller) -> None:
    read = owner.get(PATH).headers["ETag"]
    private = owner.call("PATCH", PATH, {"is_public": False})

    late = change(owner, {"is_public": True, "forwards_writes": True}, read)

    assert (late.status, late.code) == (409, "changed_since_read")
    assert [(each["field"], each["message"]) for each in late.body["errors"]] == [
        ("is_public", "It is now false.")
    ]
    present = owner.get(PATH)
    assert (present.body, present.headers["ETag"]) == (private.body, private.headers["ETag"])
    assert AuditEvent.objects.filter(tag="api:bucket:update").count() == 1
    again = change(owner, {"forwarded_headers": ["x-b", "x-a"]}, present.headers["ETag"])
    assert (again.status, again.body["is_public"]) == (200, False)
    assert change(owner, {"forwards_writes": True}, again.headers["ETag"]).status == 200
    assert change(owner, {"forwards_writes": False}, "*").status == 200


def test_of_changes_of_one_version_at_once_one_is_made(owner: Caller) -> None:
    for _ in range(3):
        read = owner.get(PATH)
        # Each of them a change, whichever was made before.
        bodies = [{name: not read.body[name]} for name in ("is_public", "verifies_reads")] * 2
        version = read.headers["ETag"]
        answers = at_once(*(partial(change, owner, body, version) for body in bodies))
        assert sorted(each.status for each in answers) == [200, 409, 409, 409]
        assert {each.code for each in answers if each.status == 409} == {"changed_since_read"}
