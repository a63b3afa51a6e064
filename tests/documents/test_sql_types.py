"""docs/sql-types.md shows values as the API answers with them."""

import json
import re

import pytest

from accounts.models import User
from tests.cast import signed_in
from tests.documents.blocks import ROOT

LINES = re.findall(
    r"^\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|$",
    (ROOT / "docs/sql-types.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.django_db
def test_each_value_is_as_the_page_shows_it(alice: User) -> None:
    assert len(LINES) > 15
    columns = ", ".join(f'{expression} AS "{name}"' for name, expression, _ in LINES)
    answer = signed_in(alice).post("/v1/sql", {"query": f"SELECT {columns}"})
    assert answer.status == 200, answer.body
    assert answer.body["rows"] == [{name: json.loads(shown) for name, _, shown in LINES}]
