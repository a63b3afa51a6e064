"""The time of the admin's pages with 10,000 organizations, in the process.

Prints times, not ratios, because a page may take 300 ms; and the processor time of the process,
which does not depend on other load of the machine.
"""

import statistics
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Environment, Organization
from platform_site.models import ActiveOrganization
from platform_site.staff import activity
from tests.staff import staff_inside

MANY: Final = 10_000
EVENTS: Final = 100_000
BATCH: Final = 5000
PAGES: Final = {
    "dashboard": "/admin/",
    "organizations": "/admin/environments/organization/",
    "organizations, search": "/admin/environments/organization/?q=999",
    "organizations, last page": "/admin/environments/organization/?p=99",
    "users": "/admin/accounts/user/",
    "users, search": "/admin/accounts/user/?q=person999",
    "environments": "/admin/environments/environment/",
    "environments, search": "/admin/environments/environment/?q=999",
    "audit trail": "/admin/audit/auditevent/",
    "audit trail, search": "/admin/audit/auditevent/?q=session",
}


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print a line for each page: the median time, and the median processor time."""
    fill()
    browser = staff_inside()
    for name, path in PAGES.items():
        _time(browser, path)
        times = [_time(browser, path) for _ in range(rounds)]
        took, computed = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"  {name}: {took:.0f} ms, of which {computed:.0f} ms computing", flush=True)


def fill() -> None:
    """Create organizations with two environments, a user and ten events each."""
    now = timezone.now()
    homes = Organization.objects.bulk_create(
        (Organization(name=f"organization {number}") for number in range(MANY)), BATCH
    )
    Environment.objects.bulk_create(  # of all organizations
        (
            Environment(organization=home, slug=slug, name=f"{slug} {home.pk}")
            for home in homes
            for slug in ("live", "sandbox")
        ),
        BATCH,
    )
    User.objects.bulk_create(  # of all organizations
        (User(organization=home, email=f"person{home.pk}@example.com") for home in homes), BATCH
    )
    AuditEvent.objects.bulk_create(
        (
            AuditEvent(tag="api:session:create", organization_id=homes[number % MANY].pk)
            for number in range(EVENTS)
        ),
        BATCH,
    )
    ActiveOrganization.objects.bulk_create(
        (ActiveOrganization(day=now.date(), organization_id=home.pk) for home in homes), BATCH
    )
    activity.roll_up(now=now + timedelta(minutes=10))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _time(browser: Client, path: str) -> tuple[float, float]:
    """Return the time of a page and its processor time, in milliseconds."""
    began, computing = time.perf_counter(), time.process_time()
    # Of the hosts that a deployment allows; the test client's own is none of them.
    status = browser.get(path, HTTP_HOST="localhost").status_code
    took, computed = time.perf_counter() - began, time.process_time() - computing
    if status != 200:
        raise RuntimeError(f"{path} was answered with {status}")
    return took * 1000, computed * 1000
