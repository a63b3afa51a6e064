"""An organization's page in the admin: what it has, and the lists behind that."""

import re

import pytest
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiKey, Session, User
from audit.models import AuditEvent
from environments import request_activity
from environments.models import Environment, Organization, RequestHour
from sqlgateway.models import Database
from tests.cast import signed_in
from tests.platform_site.staff import rows

pytestmark = pytest.mark.django_db


def cards(browser: Client, number: int) -> dict[str, tuple[str, str, str]]:
    """Return the value, the note and the link of each card, by its title."""
    page = browser.get(f"/admin/environments/organization/{number}/change/").content.decode()
    text = re.sub(r"\s+", " ", page)
    card = (
        r'(?:<a href="([^"]*)"|<div) class="[^"]* staff-card"> <div class="grow relative">'
        r' <div class="staff-card-title">(.*?)</div>'
        r' (?:<div class="staff-card-value">(.*?)</div> )?'
        r'<div class="staff-card-(?:note|link)">(.*?)</div>'
    )
    found = re.findall(card, text)
    return {title: (value, note, link) for link, title, value, note in found}


def test_an_organization_s_page_leads_to_what_it_has(
    inside: Client, alice: User, bob: User, charlie: User
) -> None:
    signed_in(alice)
    signed_in(alice).post("/v1/api-keys", {"name": "nightly", "role": "reader"})
    User.objects.filter(pk=bob.pk).update(is_active=False)
    RequestHour.objects.create(
        organization_id=alice.organization_id,
        hour=request_activity.first_hour(now=timezone.now()),
        requests=40,
        refused=3,
        failed=1,
    )
    found = cards(inside, alice.organization_id)
    assert found["Users"][:2] == ("2", "1 active")
    assert found["Open sessions"][0] == "2"
    assert found["API keys"][0] == "1"
    assert found["Environments"][0] == "2"
    assert found["API requests, 24 h"][:2] == ("40", "3 refused, 1 failed")
    assert {"Databases", "Buckets", "Credits", "Usage"} <= found.keys()
    # A word is a link, not a figure.
    assert {value for value, _, _ in found.values()} & {"List", "Events", "Lines"} == set()
    assert found["Buckets"][:2] == ("", "List")
    for title, (_, _, link) in found.items():
        if link and "/edgecache/" not in link:
            assert inside.get(link.replace("&amp;", "&")).status_code == 200, title
    users = inside.get(found["Users"][2]).content.decode()
    assert alice.email in users
    assert charlie.email not in users


def test_its_queries_do_not_grow_with_what_it_has(inside: Client, alice: User) -> None:
    owners: dict[type[Model], Model] = {
        Organization: Organization.objects.get(pk=alice.organization_id)
    }
    path = f"/admin/environments/organization/{alice.organization_id}/change/"

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert inside.get(path).status_code == 200
        return len(captured)

    few = queries()
    for model in (User, Session, ApiKey, Environment, Database, RequestHour):
        rows.add(model, 20, owners=owners)
    # The first page may have read what the process keeps from then on.
    assert queries() <= few <= 20


def test_the_lists_behind_it_are_read_by_an_index(inside: Client, alice: User) -> None:
    number = alice.organization_id
    paths = [link for _, _, link in cards(inside, number).values() if "/edgecache/" not in link]
    paths += [f"/admin/audit/auditevent/?q={number}", f"/admin/billing/usageline/?q={number}"]
    for path in filter(None, paths):
        with CaptureQueriesContext(connection) as captured:
            assert inside.get(path.replace("&amp;", "&")).status_code == 200
        # As text, every row is compared.
        assert not any("UPPER(" in query["sql"] for query in captured), path


def test_a_number_that_is_searched_for_finds_its_rows(inside: Client) -> None:
    AuditEvent.objects.create(tag="a:b:c", organization_id=7)
    AuditEvent.objects.create(tag="a:b:c", organization_id=77)
    for number, found in [("7", 1), (" 77 ", 1), ("8", 0), ("9" * 30, 0)]:
        page = inside.get("/admin/audit/auditevent/", {"q": number})
        assert page.context["cl"].result_count == found


def test_an_unknown_organization_has_no_page(inside: Client) -> None:
    for number in ("x", "999999999"):
        answer = inside.get(f"/admin/environments/organization/{number}/change/")
        assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
