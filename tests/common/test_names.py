"""Names that others see in lists and mails cannot pretend to be more than a name."""

from typing import Any

import pytest

from accounts.models import User
from tests.cast import PASSWORD, Caller, signed_in

pytestmark = pytest.mark.django_db

HOSTILE = (
    "a\nYour account is locked",
    "a\u2028b",
    "a\x1b[2Jb",
    "a\u202egnp.exe",
    "a\u2066b",
    "\u200fa",
)
NAMED: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("PATCH", "/v1/organization", "name", {}),
    ("POST", "/v1/environments", "name", {"id": "stage"}),
    ("PATCH", "/v1/environments/sandbox", "name", {}),
    ("POST", "/v1/api-keys", "name", {"role": "reader"}),
    ("POST", "/v1/webhooks", "description", {"url": "https://example.com/", "events": []}),
)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.parametrize(("method", "path", "field", "more"), NAMED)
def test_a_name_is_one_line_in_one_direction(
    alice: User, method: str, path: str, field: str, more: dict[str, Any], name: str
) -> None:
    answer = signed_in(alice).call(method, path, more | {field: name})
    assert answer.status == 400
    wrong = {each["field"]: each["code"] for each in answer.body["errors"]}
    assert wrong[field] == "name"


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_an_organization_does_not_begin_with_such_a_name(name: str) -> None:
    body = {"email": "dora@example.com", "password": PASSWORD, "organization": name}
    assert Caller().post("/v1/auth/signup", body).status == 400


def test_names_of_all_scripts_and_pictures_are_names(alice: User) -> None:
    name = "Zoë’s \u05d0\u05d1 \u0633\u0644\u200c\u0627\u0645 👩\u200d🔬"
    assert signed_in(alice).call("PATCH", "/v1/organization", {"name": name}).status == 200
    assert signed_in(alice).get("/v1/organization").body["name"] == name
