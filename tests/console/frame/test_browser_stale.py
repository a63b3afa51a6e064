"""In a browser: a page that stands open takes nothing back that was changed elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.cast import Caller, member, signed_in
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

BUCKET: dict[str, Any] = {"name": "site", "is_public": True}
ORIGIN = {"name": "web", "kind": "http", "config": {"url": "https://files.example.com/"}}
HOOK: dict[str, Any] = {"url": "https://example.com/hook", "events": ["member.added"]}
QUERY: dict[str, Any] = {"name": "Orders", "query": "SELECT 1"}


@dataclass(frozen=True)
class Form:
    """A form that shows what is stored.

    make: creates it through the API, and returns its path there. page: where it is shown, with the
    last part of the path as {id}. opens: the button of its dialog. edit: what the user types, and
    mine: what that changes. elsewhere: what is changed meanwhile, of other fields if there are any.
    agrees: the answer to the question before a change.
    """

    name: str
    make: Callable[[Caller], str]
    page: str
    edit: Callable[[Page], object]
    mine: dict[str, Any]
    elsewhere: dict[str, Any]
    opens: str = ""
    method: str = "PATCH"
    save: str = "Save"
    agrees: str = ""
    says: str = "This was changed elsewhere after it was shown here."


def at(path: str) -> Callable[[Caller], str]:
    """Return a function that makes nothing."""
    return lambda admin: path


def made(path: str, body: dict[str, Any], field: str) -> Callable[[Caller], str]:
    """Return a function that creates a row; its path ends with a field of it."""
    return lambda admin: f"{path}/{admin.post(path, body).body[field]}"


def second_admin(admin: Caller) -> str:
    user = User.objects.get(email=EMAIL)
    return f"/v1/members/{member(user.organization, 'bob@example.com').pk}"


FORMS = [
    Form(
        "policy",
        at("/v1/auth/2fa/policy"),
        "policy",
        lambda page: page.get_by_label("Days to set one up").fill("14"),
        {"grace_period_days": 14},
        {"required": True, "grace_period_days": 30},
        method="PUT",
        agrees="Save the policy",
    ),
    Form(
        "member",
        second_admin,
        "members",
        lambda page: page.locator("#member-labels").fill("billing"),
        {"labels": ["billing"]},
        {"roles": ["reader"]},
        opens="Change: bob@example.com",
    ),
    Form(
        "bucket",
        made("/v1/cache/buckets", BUCKET, "name"),
        "objects?bucket=site&view=settings",
        lambda page: page.get_by_label("Verify every read").check(),
        {"verifies_reads": True},
        {"is_public": False},
    ),
    Form(
        "options of an origin",
        made("/v1/cache/origins", ORIGIN, "name"),
        "objects?view=origins",
        lambda page: page.locator("#origin-host").fill("www.example.org"),
        {"host": "www.example.org"},
        {"connections": 4},
        opens="Change the options of web",
    ),
    Form(
        "webhook",
        made("/v1/webhooks", HOOK, "id"),
        "webhooks",
        lambda page: page.get_by_label("Description").fill("the ledger"),
        {"description": "the ledger"},
        {"url": "https://example.com/other"},
        opens=f"Change: {HOOK['url']}",
    ),
    Form(
        "environment",
        at("/v1/environments/live"),
        "environments",
        lambda page: page.get_by_label("New name").fill("Main"),
        {"name": "Main"},
        {"name": "Production"},
        opens="Rename: live",
        save="Rename",
    ),
    Form(
        "organization",
        at("/v1/organization"),
        "organization",
        lambda page: page.locator("#name").fill("Lakes"),
        {"name": "Lakes"},
        {"name": "Rivers"},
        save="Rename",
    ),
    Form(
        "spend cap",
        at("/v1/balance/spend-cap"),
        "usage",
        lambda page: page.locator("#cap").fill("12.50"),
        {"cap_cents": 1250},
        {"cap_cents": 500},
        method="PUT",
        save="Set the cap",
    ),
    Form(
        "saved query",
        made("/v1/sql/queries", QUERY, "id"),
        "sql?saved={id}",
        lambda page: page.locator("#save-name").fill("ORDERS"),
        {"name": "ORDERS"},
        {"version": 1, "name": "Orders of today"},
        opens="Save …",
        says="The saved query was changed by another request.",
    ),
]


def press_save(visitor: Visitor, form: Form) -> None:
    visitor.press(form.save)
    if form.agrees:
        visitor.agrees(form.agrees)


@pytest.mark.usefixtures("over_a_brain")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_an_open_form_keeps_what_was_changed_elsewhere_and_says_so(
    visitor: Visitor, form: Form
) -> None:
    sign_up(visitor)
    admin = signed_in(User.objects.get(email=EMAIL))
    path = form.make(admin)
    visitor.go(f"/console/{form.page.format(id=path.rpartition('/')[2])}")
    if form.opens:
        visitor.press(form.opens)
        # Until the dialog has read what is stored.
        visitor.settle()
    other = admin.call(form.method, path, form.elsewhere)
    assert other.status == 200, other.body
    form.edit(visitor.page)

    press_save(visitor, form)

    visitor.sees(form.says)
    # A member's answer also lists what ended with its admin role.
    stored = admin.get(path).body
    assert stored == {name: other.body[name] for name in stored}

    press_save(visitor, form)

    expect(visitor.page.get_by_text(form.says)).to_be_hidden()
    visitor.settle()
    now = admin.get(path).body
    kept = {name: value for name, value in form.elsewhere.items() if name != "version"}
    expected = {**kept, **form.mine}
    assert {name: now[name] for name in expected} == expected
