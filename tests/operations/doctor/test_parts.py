"""What is wrong with one part is named, with what to do."""

import shutil
from collections import namedtuple
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core import checks
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import User
from audit.models import AuditEvent
from common.settings.env import Env
from common.settings.table import load
from operations.management.commands.doctor import _findings
from operations.tasks import record_keys
from outbox.conf import MailSettings
from outbox.models import WebhookDelivery, WebhookEndpoint
from sqlgateway.models import Cluster
from tests.commands import facts, run
from tests.operations.doctor.support import findings
from tests.outbox.webhooks.support import subscribe
from tests.ports import free_port

pytestmark = pytest.mark.django_db
Usage = namedtuple("Usage", "total used free")
KEYS = {
    "SECRET_KEY",
    "ZSECRET_KEYS",
    "ZJWT_SECRET",
    "ZJWT_REFRESH_SECRET",
    "ZMFA_SECRET",
    "ZCACHE_BRAIN_SECRET",
}


@pytest.mark.parametrize(("free", "level"), [(50, "ok"), (8, "warning"), (2, "failed")])
def test_a_disk_that_fills_up_is_named(
    monkeypatch: pytest.MonkeyPatch, free: int, level: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100 << 30, 0, free << 30))
    [(found, message, advice)] = findings("disk", is_healthy=level != "failed")
    assert (found, message.split(" are free")[0]) == (level, f"{free} GiB ({free}%)")
    assert ("Make room" in advice) == (level != "ok")


@pytest.mark.parametrize(
    ("backend", "is_production", "level"),
    [
        ("", True, "skipped"),
        ("outbox.messages.sms.console.Console", False, "skipped"),
        ("outbox.messages.sms.console.Console", True, "failed"),
        ("outbox.messages.sms.twilio.Twilio", True, "ok"),
    ],
)
def test_text_messages_without_a_provider_fail_in_production(
    settings: Settings, backend: str, is_production: Any, level: str
) -> None:
    settings.SMS_BACKEND = backend
    settings.IS_PRODUCTION = is_production
    # Others fail then, in a platform that is set up for development.
    report = run_findings()
    [(found, advice)] = [(row["level"], row["advice"]) for row in report if row["subject"] == "sms"]
    assert found == level
    assert ("ZSMS_URL=twilio" in advice) == (level == "failed" or "console" in backend)


@pytest.mark.parametrize("url", ["console:", "file:///var/mail/zonal"])
def test_mail_that_stays_on_this_machine_fails_in_production(settings: Settings, url: str) -> None:
    backend = load(MailSettings, Env({"ZMAIL_URL": url})).backend
    settings.EMAIL_BACKEND, settings.MAIL_OPTIONS = backend.path, backend.options
    for is_production, level in ((False, "skipped"), (True, "failed")):
        settings.IS_PRODUCTION = is_production
        report = run_findings()
        [found] = [row["level"] for row in report if row["subject"] == "mail"]
        assert found == level


def run_findings() -> list[dict[str, str]]:
    """Return all findings, whether something failed or not."""
    return [one.as_json() for one in _findings()]


def test_migrations_that_wait_come_before_what_reads_tables() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE id = "
            "(SELECT max(id) FROM django_migrations WHERE app = 'recovery')"
        )
    [(level, message, advice)] = findings("migrations", is_healthy=False)
    assert (level, message) == ("failed", "1 migrations are not applied.")
    assert "manage.py migrate" in advice
    [(level, message, _)] = findings("clusters", is_healthy=False)
    assert (level, message) == ("skipped", "Not checked: migrations come first.")


def test_a_server_of_tenants_that_is_away_fails() -> None:
    cluster = Cluster(name="gone", capacity=10, server_version=180007)
    cluster.url = f"postgresql://zonal@127.0.0.1:{free_port()}/"
    cluster.save()
    found = findings("clusters", is_healthy=False)
    [(_, message, advice)] = [row for row in found if row[0] == "failed"]
    assert message.startswith("gone does not answer")
    assert "Start it" in advice


def test_servers_without_capacity_require_another_one() -> None:
    facts("listclusters")
    Cluster.objects.update(capacity=0)
    found = findings("clusters", is_healthy=True)
    [(_, _, advice)] = [row for row in found if "nine tenths" in row[1]]
    assert advice == "Run `manage.py addcluster`."


def test_settings_that_do_not_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [
        checks.Error("The two keys are the same.", hint="Make another.", id="zonal.E009"),
        checks.Warning("This is old.", id="zonal.W009"),
    ]
    monkeypatch.setattr(checks, "run_checks", lambda **_: wrong)
    assert findings("settings", is_healthy=False) == [
        ("failed", "The two keys are the same. (zonal.E009)", "Make another."),
        ("warning", "This is old. (zonal.W009)", "See docs/settings.md."),
    ]


def test_every_key_has_an_age_and_an_old_one_should_be_changed(settings: Settings) -> None:
    now = datetime.now(UTC)
    assert {row[0] for row in findings("keys", is_healthy=True)} == {"skipped"}
    with time_machine.travel(now - timedelta(days=366), tick=False):
        record_keys(0)
    ring = ("a new key that is long enough, or longer", *settings.ACCOUNTS.access_keys)
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_keys=ring)
    record_keys(0)
    record_keys(0)

    found = {message.split()[0]: (level, advice) for level, message, advice in _ages()}
    assert set(found) == KEYS
    assert found.pop("ZJWT_SECRET") == ("ok", "")
    assert {level for level, _ in found.values()} == {"warning"}
    assert all(advice.endswith((".", ";")) for _, advice in found.values())
    assert "manage.py rotatekeys" in found["ZJWT_REFRESH_SECRET"][1]
    # Each once, and no key with them.
    events = AuditEvent.objects.filter(tag="system:key:see")
    assert events.count() == len(KEYS) + 1
    assert not any(key in str(event.data) for event in events for key in ring)


def _ages() -> list[tuple[str, str, str]]:
    return [row for row in findings("keys", is_healthy=True) if "in use for" in row[1]]


def test_a_delivery_of_a_webhook_that_could_have_been_sent_is_named(alice: User) -> None:
    endpoint = subscribe(alice.organization_id, "member.added")
    _deliver(endpoint, minutes=10)
    [(level, message, advice)] = findings("webhooks", is_healthy=True)
    assert (level, message[:39]) == ("warning", "A delivery could have been sent 600 s a")
    assert "task worker" in advice
    WebhookEndpoint.objects.update(resting_until=timezone.now() + timedelta(hours=1))
    assert findings("webhooks", is_healthy=True)[0][0] == "ok"


def _deliver(endpoint: WebhookEndpoint, *, minutes: int) -> None:
    then = timezone.now() - timedelta(minutes=minutes)
    WebhookDelivery.objects.create(
        organization_id=endpoint.organization_id,
        endpoint=endpoint,
        event="member.added",
        created_at=then,
        expires_at=then + timedelta(days=1),
        next_attempt_at=then,
    )


def test_many_simultaneously_failing_webhooks_are_the_platforms_problem(alice: User) -> None:
    webhooks = [subscribe(alice.organization_id, "member.added") for _ in range(7)]
    for each in webhooks[:4]:
        each.failing_since = timezone.now()
        each.save()
    message = "7 are sent in time; 0 deliveries of the last day failed permanently."
    assert findings("webhooks", is_healthy=True) == [("ok", message, "")]
    webhooks[4].failing_since = timezone.now()
    webhooks[4].save()
    [(level, message, advice)] = findings("webhooks", is_healthy=True)
    assert (level, message) == ("warning", "5 of 7 webhooks fail.")
    assert "DNS" in advice
    assert "         See that this machine" in run("doctor")
