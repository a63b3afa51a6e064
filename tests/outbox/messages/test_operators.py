"""What operators see and can do: the command, the admin, the console backends, the checks."""

import json
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.sessions.backends.db import SessionStore
from django.core import mail
from django.core.management import CommandError, call_command
from django.template.response import TemplateResponse
from django.test import RequestFactory
from django.utils import timezone
from pytest_django import Settings

from accounts import checks, notices
from accounts.models import User
from audit.models import AuditEvent
from outbox.models import Delivery
from platform_site.staff.login import PROVEN
from tests.outbox.messages.support import CODE, run

pytestmark = pytest.mark.django_db


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("deliveries", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def fail(delivery: Delivery) -> Delivery:
    delivery.attempts = 10
    delivery.finish(Delivery.State.FAILED, error="mail_server_away", now=timezone.now())
    return delivery


def test_the_command_shows_states_and_masked_recipients_without_content(
    code_mail: Delivery, code_sms: Delivery
) -> None:
    fail(code_sms)
    shown = command()
    assert str(code_mail.pk) in shown
    assert "a***@example.com" in shown
    assert "mail_server_away" in shown
    assert "Total: failed 1, queued 1." in shown
    for secret in (CODE, "alice@", "4915112345678", code_mail.payload):
        assert secret not in shown


def test_the_command_filters_and_prints_json(code_mail: Delivery, code_sms: Delivery) -> None:
    fail(code_sms)
    [row] = json.loads(command("--state", "failed", "--json"))["deliveries"]
    assert (row["id"], row["kind"], row["to"]) == (str(code_sms.pk), "sms", "***78")
    shown = json.loads(command("--kind", "mail", "--limit", "0", "--json"))
    assert shown == {"deliveries": [], "totals": {"failed": 1, "queued": 1}}
    assert len(json.loads(command("--json"))["deliveries"]) == 2


def test_a_failed_delivery_is_retried_by_its_id(code_mail: Delivery) -> None:
    fail(code_mail)
    assert command("--retry", str(code_mail.pk)) == f"{code_mail.pk} is queued.\n"
    code_mail.refresh_from_db()
    assert (code_mail.state, code_mail.attempts_allowed) == ("queued", 20)
    assert run(code_mail).state == "sent"
    assert len(mail.outbox) == 1


def test_all_failed_deliveries_are_retried(code_mail: Delivery, code_sms: Delivery) -> None:
    fail(code_mail)
    fail(code_sms)
    assert command("--retry-failed", "--dry-run").startswith("2 queued.\n")
    assert command("--retry-failed", "--kind", "mail") == "1 queued.\n"
    assert command("--retry-failed") == "1 queued.\n"
    assert command("--retry-failed") == "0 queued.\n"
    events = AuditEvent.objects.filter(tag="cli:delivery:retry").order_by("id")
    assert [event.data["delivery"] for event in events] == [str(code_mail.pk), str(code_sms.pk)]
    assert events[0].organization_id == code_mail.organization_id


def test_a_refused_retry_reports_the_reason(code_mail: Delivery) -> None:
    with pytest.raises(CommandError, match="There is no delivery"):
        command("--retry", str(uuid4()))
    Delivery.objects.update(state="sending")
    with pytest.raises(CommandError, match="being sent right now"):
        command("--retry", str(code_mail.pk))
    Delivery.objects.update(state="queued")
    run(code_mail)
    with pytest.raises(CommandError, match="its content is gone"):
        command("--retry", str(code_mail.pk))


def test_the_admin_shows_deliveries_without_their_content(
    rf: RequestFactory, alice: User, code_mail: Delivery
) -> None:
    request = rf.get("/admin/outbox/delivery/")
    request.user = alice
    request.session = SessionStore()
    request.session[PROVEN] = str(alice.pk)
    alice.is_staff = True
    model_admin = admin.site._registry[Delivery]
    for page in (
        model_admin.changelist_view(request),
        model_admin.change_view(request, str(code_mail.pk)),
    ):
        assert isinstance(page, TemplateResponse)
        shown = page.render().content.decode()
        assert str(code_mail.pk) in shown
        for secret in (CODE, "alice@example.com</", code_mail.payload):
            assert secret not in shown


def test_the_console_shows_the_code_and_the_log_does_not(
    settings: Settings,
    code_mail: Delivery,
    code_sms: Delivery,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.EMAIL_BACKEND = "outbox.messages.development.EmailBackend"
    settings.SMS_BACKEND = "outbox.messages.sms.console.send"
    assert run(code_mail).state == run(code_sms).state == "sent"
    out, err = capfd.readouterr()
    assert (
        f"--- mail to alice@example.com\nYour code – Zonal\n\nYour code to sign in: {CODE}" in out
    )
    assert f"--- SMS to +4915112345678\nYour code: {CODE}" in out
    assert "<html" not in out
    assert CODE not in err + caplog.text


@pytest.mark.parametrize(
    ("changed", "check_id"),
    [
        ({"EMAIL_BACKEND": "outbox.messages.development.EmailBackend"}, "zonal.E012"),
        ({"EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend"}, "zonal.E012"),
        ({"SMS_BACKEND": "outbox.messages.sms.console.send"}, "zonal.E013"),
        ({"SMS_BACKEND": "outbox.messages.sms.file.send"}, "zonal.E013"),
        (
            {"MAIL_OPTIONS": {"host": "relay.example.com", "use_tls": False, "use_ssl": False}},
            "zonal.W002",
        ),
    ],
)
def test_production_refuses_backends_that_others_can_read(
    settings: Settings, changed: dict[str, Any], check_id: str
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.MAIL_OPTIONS = {"host": "localhost", "use_tls": False, "use_ssl": False}
    settings.SMS_BACKEND = ""
    settings.SMS_OPTIONS = {}
    assert checks.production_delivery() == []
    for name, value in changed.items():
        setattr(settings, name, value)
    assert [message.id for message in checks.production_delivery()] == [check_id]


def test_production_requires_a_mail_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZMAIL_URL", raising=False)
    monkeypatch.delenv("ZMAIL_FROM", raising=False)
    missing = {message.id for message in checks.production_settings()}
    assert {"zonal.E010", "zonal.E011"} <= missing


def test_a_notice_without_a_queue_worker_is_shown_as_queued(alice: User) -> None:
    delivery = notices.queue_notice(alice, "password_changed")
    assert "password_changed" in command("--state", "queued")
    assert delivery.next_attempt_at is not None
