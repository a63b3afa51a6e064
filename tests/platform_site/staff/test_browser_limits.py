"""In a browser: staff see organizations' limits and set them, on wide and on narrow screens."""

import pytest

from sqlgateway.models import OrganizationQuota
from tests import cast
from tests.commands import run
from tests.console.browser import Visitor
from tests.platform_site.staff.test_browser_billing import look

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_limits_are_found_from_the_organization_and_set_in_two_steps(staff: Visitor) -> None:
    page, number = staff.page, cast.organization("Lakes and Rivers Limited").pk
    run("setquota", str(number), "--max-rows", "500")
    page.goto(f"{staff.base}/admin/environments/organization/{number}/change/")
    page.get_by_role("link", name="1 own").click()
    staff.sees("500, its own")
    look(page)
    page.get_by_role("link", name="Set limits…").click()
    staff.sees("Set limits: Lakes and Rivers Limited")
    look(page)
    staff.fill("Request time (ms)", "30001")
    staff.press("Continue")
    staff.sees("30001 is above 30000, which ZSQL_TIMEOUT_MS allows at most.")
    look(page)
    staff.fill("Request time (ms)", "900")
    staff.fill("Result rows", "")
    staff.press("Continue")
    staff.sees("Request time: 900 ms, its own")
    look(page)
    staff.fill("Reason", "ticket 7")
    staff.press("Set limits")
    staff.sees("Done: Lakes and Rivers Limited")
    look(page)
    page.goto(f"{staff.base}/admin/sqlgateway/organizationlimits/?q={number}")
    staff.sees("900 ms, own")
    look(page)
    row = OrganizationQuota.objects.get(organization_id=number)
    assert row.limits == {"timeout_ms": 900}
