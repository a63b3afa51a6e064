"""The admin's lists: their queries do not grow with their rows, and what the sidebar leads to."""

import re

import pytest
from django.contrib import admin
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from environments.models import Organization
from tests.platform_site.staff import rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
# The task queue's tables are written by its own functions only.
FILLED = sorted(
    (model for model in admin.site._registry if model._meta.managed), key=lambda m: m._meta.label
)


def queries_of(browser: Client, model: type[models.Model]) -> int:
    """Return the number of queries of a model's list."""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    with CaptureQueriesContext(
        connection,
    ) as queries:
        response = browser.get(reverse(name))
    assert response.status_code == 200
    return len(queries)


@pytest.mark.parametrize("model", FILLED, ids=lambda model: model._meta.label)
def test_a_list_is_searched_and_takes_as_many_queries_for_30_rows_as_for_3(
    inside: Client, model: type[models.Model]
) -> None:
    rows.add(model, 3)
    few = queries_of(inside, model)
    rows.add(model, 27)
    assert queries_of(inside, model) == few <= 12

    row = model._default_manager.first()
    assert row is not None
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    assert inside.get(path, {"q": "12"}).status_code == 200
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
    assert {inside.get(path).status_code for path in paths} == {200}


def test_every_list_is_in_the_sidebar(inside: Client) -> None:
    page = inside.get("/admin/").content.decode()
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        assert f'href="{reverse(name)}"' in page, name
    assert "/admin/auth/group/" not in page


def test_a_long_list_says_how_much_it_counts(
    inside: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.admin.pages.MAX_COUNTED", 5)
    Organization.objects.bulk_create(Organization(name=f"o{n}") for n in range(20))
    page = inside.get(reverse("admin:environments_organization_changelist"))
    assert page.context["cl"].result_count == 5
