"""In a browser: the admin's pages are for everyone, on wide and on narrow screens."""

from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from platform_site.models import ActivitySample
from platform_site.staff.activity import SLOT
from tests.console.accessibility import violations
from tests.console.browser import SCHEMES, Visitor
from tests.console.frame.test_browser_back import PAGE_IS_KEPT, PAGE_IS_SHOWN_AGAIN
from tests.platform_site.staff import rows
from tests.platform_site.staff.test_dashboard import sample
from tests.platform_site.staff.test_lists import FILLED
from tests.staff import EMAIL, staff_inside

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

COUNTS = ("sign_ins", "sign_ins_refused", "sql_requests", "sql_errors")
SIDEBAR = "#nav-sidebar-apps a[href^='/admin/']"
# Of each line's samples: its chart and number, and if something is drawn where it belongs.
LINES = "canvas.chart[data-type=line]"
SAMPLES = """(lines) => [...document.querySelectorAll(lines)].flatMap((canvas) => {
  const chart = window.Chart.getChart(canvas);
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const pixels = copy.getContext("2d", { willReadFrequently: true });
  pixels.drawImage(canvas, 0, 0);
  const scale = canvas.width / chart.width;
  return chart.data.datasets.flatMap((set, index) => set.data.flatMap((value, number) => {
    if (value === null) return [];
    const { x, y } = chart.getDatasetMeta(index).data[number];
    const { data } = pixels.getImageData(x * scale - 1, y * scale - 1, 3, 3);
    return [[`${set.label} ${number}: ${value}`, data.some((each) => each > 0)]];
  }));
})"""
SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.mark.parametrize("width", [390, 1440])
def test_the_admin_is_readable_and_fits_the_screen(
    visit: Callable[..., Visitor], width: int
) -> None:
    cookie = staff_inside().cookies["sessionid"].value
    visitor = visit(viewport={"width": width, "height": 844})
    visitor.context.add_cookies([{"name": "sessionid", "value": cookie, "url": visitor.base}])
    user = User.objects.get(email=EMAIL)
    for path in ("", "accounts/user/", f"accounts/user/{user.pk}/change/"):
        for scheme in SCHEMES:
            visitor.page.emulate_media(color_scheme=scheme)
            visitor.page.goto(f"{visitor.base}/admin/{path}")
            assert violations(visitor.page, scheme=scheme) == [], f"{path}, {scheme}"
        assert not visitor.page.evaluate(SCROLLS), path


@pytest.mark.usefixtures("over_a_brain")
def test_every_list_is_readable_and_fits_the_screen(visit: Callable[..., Visitor]) -> None:
    cookie = staff_inside().cookies["sessionid"].value
    for model in FILLED:
        rows.add(model, 1)
    visitor = visit(viewport={"width": 1440, "height": 844})
    visitor.context.add_cookies([{"name": "sessionid", "value": cookie, "url": visitor.base}])
    visitor.page.goto(f"{visitor.base}/admin/accounts/user/")
    links = visitor.page.locator(SIDEBAR).evaluate_all("(all) => all.map((each) => each.pathname)")
    assert len(set(links)) > 25
    for path in sorted(set(links)):
        visitor.page.goto(f"{visitor.base}{path}")
        for width in (1440, 390):
            visitor.page.set_viewport_size({"width": width, "height": 844})
            # Charts follow the width a moment later.
            visitor.page.wait_for_function(f"!({SCROLLS})")
        assert violations(visitor.page) == [], path


def test_a_page_that_the_browser_kept_shows_nothing_after_the_end_of_the_session(
    visit: Callable[..., Visitor],
) -> None:
    client = staff_inside()
    visitor = visit()
    cookie = client.cookies["sessionid"].value
    visitor.context.add_cookies([{"name": "sessionid", "value": cookie, "url": visitor.base}])
    visitor.page.goto(f"{visitor.base}/admin/accounts/user/")
    expect(visitor.page.get_by_role("link", name=EMAIL)).to_be_visible()
    visitor.page.evaluate(PAGE_IS_KEPT)
    expect(visitor.page.get_by_role("link", name=EMAIL)).to_be_hidden()
    client.session.flush()
    visitor.page.evaluate(PAGE_IS_SHOWN_AGAIN)
    expect(visitor.page).to_have_url(f"{visitor.base}/admin/login/?next=/admin/accounts/user/")
    assert EMAIL not in visitor.page.content()


def test_the_charts_begin_at_zero_and_draw_every_sample(staff: Visitor) -> None:
    now = timezone.now()
    for number in range(3):
        # SQL in the first and the last, with a gap between them.
        elapsed_ms = None if number == 1 else 300 + number
        ActivitySample.objects.create(
            begins_at=now - (number + 1) * SLOT,
            sql_p50_ms=elapsed_ms,
            sql_p95_ms=elapsed_ms,
            **dict.fromkeys(COUNTS, 300 + number),
        )
    for number in (1, 2):
        # One difference between two samples.
        fields = {"total_hits": 100 - 25 * number, "total_misses": 100 - 10 * number}
        sample(moment=now - number * SLOT, **fields).save()
    staff.page.goto(f"{staff.base}/admin/")
    staff.sees("25 hits and 10 misses in 24 hours.")
    drawn = """() => [...document.querySelectorAll("canvas.chart")]
      .map((each) => window.Chart.getChart(each)?.scales.y.min)"""
    staff.page.wait_for_function(f"({drawn})().every((each) => each !== undefined)")
    lowest = staff.page.evaluate(drawn)
    assert lowest
    assert set(lowest) == {0}
    samples = staff.page.evaluate(SAMPLES, LINES)
    assert len(samples) > 12
    assert [name for name, is_drawn in samples if not is_drawn] == []


@pytest.mark.parametrize("width", [390, 1440])
def test_the_sign_in_is_readable_and_fits_the_screen(
    visit: Callable[..., Visitor], width: int
) -> None:
    visitor = visit(viewport={"width": width, "height": 844})
    for scheme in SCHEMES:
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.page.goto(f"{visitor.base}/admin/login/")
        assert violations(visitor.page, scheme=scheme) == [], scheme
        for name, text in (("username", EMAIL), ("password", "wrong"), ("code", "000000")):
            visitor.page.locator(f"[name={name}]").fill(text)
        visitor.page.get_by_role("button", name="Log in").click()
        expect(visitor.page.get_by_text("Please enter the correct").first).to_be_visible()
        assert violations(visitor.page, scheme=scheme) == [], scheme
        assert not visitor.page.evaluate(SCROLLS)
