"""Staff see what each organization may use, and set its own limits; each change is recorded."""

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from accounts.models import User
from audit.models import AuditEvent
from sqlgateway.clusters.organization_limits import LIMITS
from sqlgateway.models import OrganizationQuota
from tests import cast
from tests.cast import signed_in
from tests.commands import facts, run

pytestmark = pytest.mark.django_db

LIST = "/admin/sqlgateway/organizationlimits/"
NAMES = [limit.name for limit in LIMITS]
SURE = {"confirmed": "1", "reason": "ticket 7"}


def form_path(number: object) -> str:
    return f"{LIST}{number}/set-limits/"


def opened(inside: Client, number: int) -> dict[str, str]:
    """Return the fields of the form as a browser would send them back."""
    page = inside.get(form_path(number)).content.decode()
    fields = {}
    for tag in re.findall(r"<input [^>]*>", page):
        name, value = (re.search(rf' {each}="([^"]*)"', tag) for each in ("name", "value"))
        if name and name[1] in {*NAMES, "seen"}:
            fields[name[1]] = html.unescape(value[1]) if value else ""
    return fields


def post(inside: Client, number: int, body: dict[str, str]) -> str:
    """Send the form; return the text of the page that follows."""
    page = inside.post(form_path(number), body, follow=True).content.decode()
    return " ".join(html.unescape(page).split())


def own_of(number: int) -> dict[str, int]:
    """Return the own limits that are kept."""
    row = OrganizationQuota.objects.filter(organization_id=number).first()
    return row.limits if row is not None else {}


def events(number: int) -> list[AuditEvent]:
    """Return what the trail says about an organization's limits."""
    found = AuditEvent.objects.filter(organization_id=number, tag__contains=":quota:")
    return list(found.order_by("id"))


def test_staff_set_limits_of_an_organization_that_has_none(inside: Client, alice: User) -> None:
    number = alice.organization_id
    asked = opened(inside, number) | {"disk_bytes": "5000000", "timeout_ms": "900"}
    assert set(asked) == {*NAMES, "seen"}

    shown = post(inside, number, asked)
    assert (
        "Disk: 5,000,000 bytes, its own; "
        "until now 10,737,418,240 bytes, the platform's default." in shown
    )
    assert "Request time: 900 ms, its own; until now 30,000 ms" in shown
    assert "Environments:" not in shown
    assert "A reason is required" in post(inside, number, asked | {"confirmed": "1"})
    assert not OrganizationQuota.objects.exists()

    assert "Done" in post(inside, number, asked | SURE)
    assert "nothing to do" in post(inside, number, asked | SURE)

    assert own_of(number) == {"disk_bytes": 5_000_000, "timeout_ms": 900}
    assert facts("setquota", str(number))["timeout_ms"] == 900
    (event,) = events(number)
    assert (event.tag, event.actor) == ("admin:quota:set", "root@example.com")
    assert event.data == {
        "changed": {
            "disk_bytes": {"from": None, "to": 5_000_000},
            "timeout_ms": {"from": None, "to": 900},
        },
        "reason": "ticket 7",
    }


def test_the_form_shows_own_limits_and_an_emptied_one_is_the_platforms_again(
    inside: Client, alice: User
) -> None:
    number = alice.organization_id
    run("setquota", str(number), "--max-rows", "50", "--environments", "0")
    asked = opened(inside, number)
    assert (asked["max_rows"], asked["environments"], asked["statements"]) == ("50", "0", "")

    shown = post(inside, number, asked | {"max_rows": ""} | SURE)

    assert "10,000, the platform's default; until now 50, its own." in shown
    assert own_of(number) == {"environments": 0}
    assert events(number)[-1].data["changed"] == {"max_rows": {"from": 50, "to": None}}


def test_a_form_without_a_change_changes_and_records_nothing(inside: Client, alice: User) -> None:
    number = alice.organization_id
    for _ in range(2):
        assert "nothing to do" in post(inside, number, opened(inside, number) | SURE)
        run("setquota", str(number), "--max-rows", "default")
    assert not events(number)
    assert not OrganizationQuota.objects.exists()


def test_what_was_changed_in_the_meantime_is_not_overwritten(inside: Client, alice: User) -> None:
    number = alice.organization_id
    asked = opened(inside, number) | {"timeout_ms": "900"}
    post(inside, number, asked)
    run("setquota", str(number), "--statements", "1")

    for seen in (asked["seen"], "", "[]", "[" * 900, '{"statements": 1}'):
        page = post(inside, number, asked | SURE | {"seen": seen})
        assert "The limits have changed since. Open the form again." in page

    assert own_of(number) == {"statements": 1}
    assert [event.tag for event in events(number)] == ["cli:quota:set"]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("environments", "-1", "-1 is below 0, the least that it may be."),
        ("environments", str(2**51), f"{2**51} is above {2**51 - 1}, the most that it may be."),
        ("statements", "10001", "10001 is above 10000, the most that it may be."),
        ("timeout_ms", "30001", "30001 is above 30000, which ZSQL_TIMEOUT_MS allows at most."),
        ("max_rows", "0", "0 is below 1, the least that it may be."),
        ("max_bytes", "1023", "1023 is below 1024, the least that it may be."),
        ("body_bytes", "1e6", "'1e6' is neither a whole number nor 'default'."),
        ("import_bytes", "9" * 5000, "is neither a whole number nor 'default'."),
        ("disk_bytes", "<b>", "'<b>' is neither a whole number nor 'default'."),
        ("disk_bytes", "1\0", "Null characters are not allowed."),
    ],
)
def test_a_value_that_no_limit_can_have_is_refused_with_a_sentence(
    inside: Client, alice: User, name: str, value: str, sentence: str
) -> None:
    number = alice.organization_id
    good = {"disk_bytes": "5000000"}

    page = post(inside, number, opened(inside, number) | good | {name: value} | SURE)

    assert sentence in page
    assert 'name="confirmed"' not in page
    assert not OrganizationQuota.objects.exists()
    assert not events(number)


def test_reading_never_sets_anything(inside: Client, alice: User) -> None:
    number = alice.organization_id
    query = opened(inside, number) | {"timeout_ms": "900"} | SURE
    for path in (LIST, f"{LIST}{number}/change/", form_path(number)):
        assert inside.get(path, query if path == form_path(number) else {}).status_code == 200
    assert not OrganizationQuota.objects.exists()
    assert not events(number)


def test_staff_that_may_only_look_sees_limits_and_sets_none(inside: Client, alice: User) -> None:
    number = alice.organization_id
    asked = opened(inside, number) | {"timeout_ms": "900"} | SURE
    assert form_path(number) in inside.get(f"{LIST}{number}/change/").content.decode()
    User.objects.filter(is_staff=True).update(is_view_only=True)

    page = inside.get(f"{LIST}{number}/change/").content.decode()

    assert "30,000 ms, the platform&#x27;s default" in page
    assert "set-limits" not in page
    assert inside.get(form_path(number)).status_code == 403
    assert inside.post(form_path(number), asked).status_code == 403
    assert not OrganizationQuota.objects.exists()


def test_who_is_not_staff_gets_no_form(alice: User) -> None:
    plain, number = Client(), alice.organization_id
    own_admin = signed_in(alice)
    plain.force_login(alice)
    for answer in (
        Client().post(form_path(number), {"timeout_ms": "900"} | SURE),
        plain.post(form_path(number), {"timeout_ms": "900"} | SURE),
        own_admin.post(form_path(number), {"timeout_ms": "900"} | SURE),
    ):
        assert "/admin/login/" in answer.headers["Location"]
    assert not OrganizationQuota.objects.exists()


def test_a_form_from_elsewhere_is_refused(inside: Client, alice: User) -> None:
    number = alice.organization_id
    asked = opened(inside, number) | {"timeout_ms": "900"} | SURE
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = inside.cookies
    assert strict.post(form_path(number), asked).status_code == 403
    assert not OrganizationQuota.objects.exists()


def test_an_organization_that_is_not_there_has_no_form(inside: Client) -> None:
    for number in ("999999999", "x"):
        for answer in (inside.get(form_path(number)), inside.post(form_path(number), SURE)):
            assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")


def cells(inside: Client, **query: str) -> dict[str, list[str]]:
    """Return the limits of each organization in the list, by its name."""
    page = " ".join(inside.get(LIST, query).content.decode().replace("\xa0", " ").split())
    found = {}
    for line in re.findall(r"<tr\b.*?</tr>", page):
        texts = re.findall(r"<t[dh] class=\"field-\w+[^>]*>(.*?)</t[dh]>", line)
        plain = [html.unescape(re.sub(r"<[^>]*>", "", text)).strip() for text in texts]
        if plain:
            found[plain[1]] = plain[2:]
    return found


def test_the_list_says_of_every_limit_whose_it_is(inside: Client) -> None:
    lakes, rivers = cast.organization("Lakes"), cast.organization("Rivers")
    run("setquota", str(lakes.pk), "--disk-bytes", "5242880", "--timeout-ms", "900")
    run("setquota", str(rivers.pk), "--max-rows", "7")
    run("setquota", str(rivers.pk), "--max-rows", "default")

    with override_settings(SQL=replace(settings.SQL, timeout_ms=500)):
        assert cells(inside, q="Lakes")["Lakes"][3] == "500 ms, default"
        detail = inside.get(f"{LIST}{lakes.pk}/change/").content.decode()
        assert "500 ms, the platform&#x27;s, which is below its own 900" in detail
    listed = cells(inside)

    assert listed["Lakes"][:4] == [
        "5.0 MB, own",
        "100, default",
        f"{settings.SQL.running_per_organization}, default",
        "900 ms, own",
    ]
    # Behind them some versions of the list have the row's actions.
    of_rivers = listed["Rivers"][: len(LIMITS)]
    assert len(of_rivers) == len(LIMITS)
    assert all(text.endswith(", default") for text in of_rivers)
    assert set(cells(inside, q=str(rivers.pk))) == {"Rivers"}
    assert set(cells(inside, own="yes")) == {"Lakes"}
    assert {"Rivers", "Staff"} <= set(cells(inside, own="no")) - {"Lakes"}


def test_an_organizations_page_leads_to_its_limits(inside: Client, alice: User) -> None:
    number = alice.organization_id
    home = f"/admin/environments/organization/{number}/change/"
    path = f"{LIST}{number}/change/"
    assert f'href="{path}"' in inside.get(home).content.decode()
    assert f'href="{home}"' in inside.get(path).content.decode()

    run("setquota", str(number), "--max-rows", "7")

    page = " ".join(inside.get(home).content.decode().split())
    assert '<div class="staff-card-value">1 own</div>' in page
    assert '<div class="staff-card-note">Result rows</div>' in page


def test_the_organizations_own_admin_reads_it_and_no_other(
    inside: Client, alice: User, bob: User, charlie: User
) -> None:
    number = alice.organization_id
    post(inside, number, opened(inside, number) | {"timeout_ms": "900"} | SURE)
    run("setquota", str(number), "--max-rows", "7")

    def read(user: User) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = signed_in(user).get("/v1/audit").body["results"]
        return [event for event in found if ":quota:" in event["tag"]]

    assert [(event["tag"], event["summary"]) for event in read(alice)] == [
        ("cli:quota:set", "An operator set the organization's own limits."),
        ("admin:quota:set", "Staff set the organization's own limits."),
    ]
    assert read(alice)[1]["data"]["changed"] == {"timeout_ms": {"from": None, "to": 900}}
    assert read(charlie) == []
    assert signed_in(bob).get("/v1/audit").status == 403
