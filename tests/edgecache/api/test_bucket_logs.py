"""A bucket's access log, set by the API."""

import pytest

from accounts.models import User
from audit.models import AuditEvent
from tests.cast import signed_in

pytestmark = [pytest.mark.usefixtures("over_a_brain"), pytest.mark.django_db(transaction=True)]
PATH = "/v1/cache/buckets/site"


def test_a_log_is_set_and_a_bucket_that_cannot_keep_it_is_refused(
    alice: User, charlie: User
) -> None:
    owner = signed_in(alice)
    assert signed_in(charlie).post("/v1/cache/buckets", {"name": "charlies"}).status == 201
    for name in ("site", "logs"):
        assert owner.post("/v1/cache/buckets", {"name": name}).status == 201
    for target in ("site", "charlies", "absent"):
        refused = owner.call("PATCH", PATH, {"log_bucket": target})
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, "log_bucket")
    refused = owner.call("PATCH", PATH, {"log_prefix": "x" * 201})
    assert (refused.status, refused.body["errors"][0]["field"]) == (400, "log_prefix")
    for changes in ({"log_bucket": "logs", "log_prefix": "site/"}, {"log_bucket": ""}):
        changed = owner.call("PATCH", PATH, changes)
        assert (changed.status, changed.body | changes) == (200, changed.body)
    assert AuditEvent.objects.filter(tag="api:bucket:update").count() == 2
    assert signed_in(charlie).call("PATCH", PATH, {"log_bucket": "charlies"}).status == 404
