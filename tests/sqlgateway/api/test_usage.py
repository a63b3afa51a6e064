"""GET /v1/sql/usage: what is used, and the limits, of the caller's own environment."""

import pytest
from django.utils import timezone

from common.principals import Scope
from environments import environments
from sqlgateway.databases import provisioning, quotas
from sqlgateway.models import Database
from tests import cast
from tests.cast import Caller
from tests.commands import run


def _reader_of(name: str) -> tuple[int, Caller]:
    organization = cast.organization(name)
    address = f"reader-{organization.pk}@example.com"
    return organization.pk, cast.signed_in(cast.member(organization, address, role="reader"))


@pytest.mark.provisions
def test_usage_shows_the_own_environments_size_and_limits(databases: None) -> None:
    organization_id, reader = _reader_of("Alice's")
    live = environments.find(organization_id, "live")
    before = reader.get("/v1/sql/usage").body
    provisioning.database_for(Scope(organization_id, live.pk))
    quotas.measure(Database.objects.get(), now=timezone.now())
    limits = ("--environments", "7", "--statements", "5", "--timeout-ms", "900")
    sizes = ("--max-rows", "70", "--max-bytes", "7000", "--body-bytes", "3000")
    imports = ("--import-bytes", "8000")
    run("setquota", str(organization_id), *limits, *sizes, *imports)

    usage = reader.get("/v1/sql/usage").body

    assert before["disk"]["used_bytes"] is None
    assert 0 < usage["disk"]["used_bytes"] < usage["disk"]["limit_bytes"]
    assert usage["disk"]["exceeded"] is False
    assert usage["environments"] == {"used": 2, "limit": 7}
    assert usage["statements"] == {
        "running_limit_per_environment": 5,
        "running_limit_per_organization": 5,
        "timeout_ms": 900,
        "stream_timeout_ms": 900,
        "import_timeout_ms": 900,
        "max_rows": 70,
        "max_bytes": 7000,
        "body_limit_bytes": 3000,
        "import_limit_bytes": 8000,
    }
    other = _reader_of("Charlie's")[1].get("/v1/sql/usage").body
    assert other["disk"]["used_bytes"] is None
    assert other["environments"] == {"used": 2, "limit": 100}
    assert other["statements"] == {
        "running_limit_per_environment": 2,
        "running_limit_per_organization": 3,
        "timeout_ms": 30_000,
        "stream_timeout_ms": 600_000,
        "import_timeout_ms": 600_000,
        "max_rows": 10_000,
        "max_bytes": 8 * 2**20,
        "body_limit_bytes": 2**20,
        "import_limit_bytes": 2**30,
    }
