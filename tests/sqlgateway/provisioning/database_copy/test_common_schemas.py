"""A database that works can be cloned, moved, dumped and restored."""

import pytest

from sqlgateway.provisioning import provisioning
from tests.sqlgateway.provisioning.database_copy.common_schemas import FUNCTIONS, SCHEMAS
from tests.sqlgateway.provisioning.database_copy.test_clones import _clone, _run_jobs
from tests.sqlgateway.support import Caller

pytestmark = [pytest.mark.provisions, pytest.mark.slow]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_copy_works_as_its_source(name: str, alice: Caller) -> None:
    made, query, expected = SCHEMAS[name]
    answer = alice.sql(FUNCTIONS + made)
    assert answer.status == 200, answer.body

    staging = _clone(alice)
    _run_jobs()

    assert provisioning.state_of(staging.scope.environment_pk) == "ready"
    assert staging.value(query) == expected
