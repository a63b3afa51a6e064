"""The admin's lists: their queries do not grow with their rows, and what the sidebar leads to."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final
from unittest import mock

import pytest
from django.contrib import admin
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Organization
from tests.platform_site.staff import rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
DAY: Final = timedelta(days=1)
# The task queue's tables are written by its own functions only.
FILLED = sorted(
    (model for model in admin.site._registry if model._meta.managed), key=lambda m: m._meta.label
)


def list_of(model: type[models.Model]) -> str:
    """Return the path of a model's list."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def queries_of(browser: Client, model: type[models.Model]) -> int:
    """Return the number of queries of a model's list."""
    with CaptureQueriesContext(connection) as queries:
        response = browser.get(list_of(model))
    assert response.status_code == 200
    return len(queries)


@pytest.mark.parametrize("model", FILLED, ids=lambda model: model._meta.label)
def test_a_list_is_searched_and_takes_as_many_queries_for_12_rows_as_for_3(
    inside: Client, model: type[models.Model]
) -> None:
    rows.add(model, 3)
    few = queries_of(inside, model)
    rows.add(model, 9)
    assert queries_of(inside, model) == few <= 12

    row = model._default_manager.first()
    assert row is not None
    path = list_of(model)
    assert inside.get(path, {"q": "12"}).status_code == 200
    nothing = inside.get(path, {"q": "nothing of this"}).content.decode()
    assert ("Nothing matches" in nothing) == bool(admin.site._registry[model].search_fields)
    assert "Create a new item" not in nothing
    assert inside.get(f"{path}{row.pk}/change/").status_code == 200
    assert inside.post(f"{path}add/").status_code == 403
    assert inside.post(f"{path}{row.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    "query",
    [
        "accounts/user/?password__startswith=argon2",
        "accounts/user/?password__gt=a",
        "outbox/webhookendpoint/?url__startswith=https",
        "organizations/invitation/?digest__startswith=a",
        "twofactor/factor/?secret__startswith=a",
        "billing/payoutmethod/?details__account__startswith=DE",
        "sqlgateway/cluster/?url_secret__startswith=a",
        "sqlgateway/database/?secrets__startswith=a",
        "sqlgateway/database/?cluster__url_secret__startswith=a",
    ],
)
def test_no_filter_tells_what_a_column_that_is_not_shown_holds(inside: Client, query: str) -> None:
    assert inside.get(f"/admin/{query}").status_code == 400


@pytest.mark.parametrize(
    "query", ["billing/payout/?created_at__year=99999", "accounts/user/?email__contains=%00"]
)
def test_an_impossible_value_of_a_filter_is_refused_in_a_sentence(
    inside: Client, query: str
) -> None:
    page = inside.get(f"/admin/{query}", follow=True)
    assert page.status_code == 200
    assert "The list cannot be filtered by this value." in page.content.decode()


@pytest.mark.parametrize(
    "query",
    ["accounts/user/?is_staff__exact=1&email=x", "sqlgateway/database/?cluster__id__exact=1"],
)
def test_a_shown_column_is_filtered_by(inside: Client, query: str) -> None:
    assert inside.get(f"/admin/{query}").status_code == 200


def test_every_entry_of_the_sidebar_leads_somewhere(inside: Client) -> None:
    page = inside.get(reverse("admin:accounts_user_changelist")).content.decode()
    sidebar = page.partition('id="nav-sidebar-apps"')[2].partition("</nav>")[0]
    paths = re.findall(r'<a href="(/admin/[^"]*)"', sidebar)
    assert len(paths) > 25
    # Those of rows are opened by the test above.
    others = set(paths) - {list_of(model) for model in FILLED}
    assert {inside.get(path).status_code for path in others} == {200}


def test_every_list_is_in_the_sidebar(inside: Client) -> None:
    page = inside.get("/admin/").content.decode()
    for model in admin.site._registry:
        assert f'href="{list_of(model)}"' in page, model
    assert "/admin/auth/group/" not in page


def test_a_long_list_says_how_much_it_counts(
    inside: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.admin.pages.MAX_COUNTED", 60)
    Organization.objects.bulk_create(Organization(name=f"o{n}") for n in range(60))
    path = reverse("admin:environments_organization_changelist")
    # The staff's own is the 61st.
    text = " ".join(inside.get(path).content.decode().split())
    assert "More than 60 organizations: the last pages are left out" in text
    assert "60 results" not in text
    text = " ".join(inside.get(path, {"q": "o"}).content.decode().split())
    assert "60 organizations" in text
    assert "More than" not in text


def found(browser: Client, path: str, **query: str) -> int:
    """Return the number of rows that a list shows."""
    return int(browser.get(f"/admin/{path}/", query).context["cl"].result_count)


def test_events_are_found_by_parts_in_any_case_by_source_and_by_day(inside: Client) -> None:
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    tags = ("api:member:update", "api:member:delete", "cli:backup:create")
    for tag, at in zip(tags, (noon, noon + DAY, noon + 2 * DAY), strict=True):
        # The column is set as a row is added, and a trigger refuses another value later.
        with mock.patch.object(timezone, "now", return_value=at):
            AuditEvent.objects.create(tag=tag, actor="Olga@example.com")
    events = "audit/auditevent"
    assert found(inside, events, q="API:MEMBER") == 2
    assert found(inside, events, q="olga MEMBER:upd") == 1
    assert found(inside, events, source="cli") == 1
    # Both days of a span belong to it.
    assert found(inside, events, at_from="2026-07-01", at_to="2026-07-02") == 2
    assert found(inside, events, at_from="2026-07-03", at_to="2026-07-03") == 1
    assert found(inside, events, at_to="9999-12-30") == 3
    page = inside.get("/admin/audit/auditevent/", {"at_from": "2026-07-02", "at_to": "2026-07-01"})
    assert "The first day is after the last one" in page.content.decode()
    assert "No audit event matches" in page.content.decode()


@pytest.mark.parametrize("path", ["environments/organization", "sqlgateway/organizationlimits"])
def test_an_organization_is_found_by_a_member_s_address(
    inside: Client, alice: User, bob: User, charlie: User, path: str
) -> None:
    # Of Alice and Bob one, and the staff's own.
    assert found(inside, path, q="@EXAMPLE.com") == 2
    assert found(inside, path, q=alice.email.upper()) == 1
    assert found(inside, path, q="nobody@example.com") == 0


def test_times_name_their_zone_here_and_on_the_dashboard(inside: Client) -> None:
    home = Organization.objects.create(name="o")
    shown = f"{home.created_at:%Y-%m-%d %H:%M:%S} UTC"
    assert shown in inside.get("/admin/environments/organization/").content.decode()
    dashboard = " ".join(inside.get("/admin/").content.decode().split())
    assert " UTC, as are all times here and in the lists." in dashboard


def test_a_list_from_a_link_says_by_what_it_is_narrowed(inside: Client) -> None:
    AuditEvent.objects.create(tag="a:b:c", organization_id=7)
    AuditEvent.objects.create(tag="a:b:c", organization_id=8)
    page = inside.get("/admin/audit/auditevent/?organization_id__exact=7&outcome=success")
    text = page.content.decode()
    assert "Only rows with organization id 7." in text
    assert '<a href="?outcome=success">Show all</a>' in text
