"""Servers that are slow, broken or hostile: each attempt is bounded, and no other tenant waits."""

import socket
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from common import egress
from outbox.models import WebhookDelivery, WebhookEndpoint
from outbox.webhooks import delivery_queue, dispatch
from tests import inbox
from tests.cast import signed_in
from tests.outbox.webhooks.receiver import Receiver
from tests.outbox.webhooks.support import PATH, added, asked, delivery, make_due, send_test

pytestmark = pytest.mark.django_db


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let attempts end soon."""
    monkeypatch.setattr(egress, "TIMEOUT_S", 0.5)


def attempted(user: User, url: str) -> dict[str, Any]:
    """Return what came of a test event to a URL."""
    webhook = added(user, url)
    sent = send_test(user, webhook)
    dispatch.run()
    return delivery(user, webhook, sent)


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [("/500", 500, "refused"), ("/404", 404, "refused"), ("/301", 301, "redirect")],
)
def test_another_status_than_2xx_is_tried_again(
    alice: User, receiver: Receiver, path: str, status: int, error: str
) -> None:
    receiver.statuses[path] = status
    shown = attempted(alice, receiver.url(path))
    assert (shown["state"], shown["last_status"]) == ("queued", status)
    assert shown["last_error"] == error
    # A redirect leads nowhere.
    assert receiver.paths() == [path]


@pytest.mark.parametrize("path", ["/slow", "/drip"])
def test_an_attempt_ends_in_time(alice: User, receiver: Receiver, brief: None, path: str) -> None:
    shown = attempted(alice, receiver.url(path))
    assert (shown["last_status"], shown["last_error"]) == (None, "timeout")


def test_an_answer_without_end_is_not_read(alice: User, receiver: Receiver) -> None:
    """The receiver announces a terabyte with each 200; only the head counts."""
    assert attempted(alice, receiver.url("/huge"))["state"] == "delivered"


def test_a_flood_of_interim_answers_is_cut_off(alice: User, receiver: Receiver) -> None:
    shown = attempted(alice, receiver.url("/flood"))
    assert shown["last_error"] == "answer_too_long"


def test_nonsense_and_silence_are_failures(alice: User, receiver: Receiver) -> None:
    assert attempted(alice, receiver.url("/nonsense"))["last_error"] == "answer_malformed"
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert attempted(alice, f"http://127.0.0.1:{port}/")["last_error"] == "not_reached"


def test_a_name_that_leads_to_a_private_address_is_refused_in_production(
    alice: User, settings: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IS_PRODUCTION = True
    for inside in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "::1"):
        resolve_to(monkeypatch, [inside])
        shown = attempted(alice, f"https://hooks.example.com:{receiver.port}/")
        assert shown["last_error"] == "address_refused"
    # One bad address among good ones is enough: the connection might take it.
    resolve_to(monkeypatch, ["93.184.216.34", "127.0.0.1"])
    shown = attempted(alice, f"https://hooks.example.com:{receiver.port}/")
    assert shown["last_error"] == "address_refused"
    assert receiver.messages == []


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Have names lead to these addresses, one list after the other; return the names asked for."""
    asked_for: list[str] = []
    left = list(answers)
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if not str(host).endswith("example.com"):
            return real(host, port, *args, **options)
        asked_for.append(str(host))
        found = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked_for


def test_a_name_is_looked_up_once_and_that_address_is_dialled(
    alice: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the second answer would be the one that leads inside."""
    names = resolve_to(monkeypatch, ["127.0.0.1"], ["127.0.0.9"])
    shown = attempted(alice, receiver.url("/hook", host="hooks.example.com"))
    assert shown["state"] == "delivered"
    assert names == ["hooks.example.com"]
    assert receiver.messages[0].headers["host"] == f"hooks.example.com:{receiver.port}"


def test_names_that_hang_are_one_organizations_own_trouble(
    alice: User, charlie: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its look-ups go on after their attempts, until the resolver gives up."""
    monkeypatch.setattr(egress, "LOOK_UPS", egress.LOOK_UPS_OF_ONE + 1)
    monkeypatch.setattr(egress, "LOOK_UP_S", 0.05)
    resolver_gives_up, real = threading.Event(), socket.getaddrinfo

    def look_up(host: Any, *args: Any, **options: Any) -> Any:
        if host == "hangs.example.com":
            resolver_gives_up.wait()
            raise socket.gaierror
        return real(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    hanging = [
        (webhook, send_test(alice, webhook))
        for webhook in (
            added(alice, f"http://hangs.example.com:8080/{number}")
            for number in range(egress.LOOK_UPS + 1)
        )
    ]
    try:
        dispatch.run()
        theirs = added(charlie, receiver.url())
        sent = send_test(charlie, theirs)
        dispatch.run()
        assert delivery(charlie, theirs, sent)["state"] == "delivered"
        errors = {delivery(alice, *each)["last_error"] for each in hanging}
        assert errors == {"name_not_resolved"}
    finally:
        resolver_gives_up.set()


def test_a_url_that_was_good_before_production_is_not_sent_to(
    alice: User, settings: Settings, receiver: Receiver
) -> None:
    webhook = added(alice, receiver.url())
    sent = send_test(alice, webhook)
    settings.IS_PRODUCTION = True
    dispatch.run()
    assert delivery(alice, webhook, sent)["last_error"] == "url_refused"
    assert receiver.messages == []


def test_slow_servers_of_one_organization_do_not_delay_another_one(
    alice: User, charlie: User, receiver: Receiver
) -> None:
    """The slow ones answer once Charlie's has been served: in one run, or in none."""
    for number in range(6):
        send_test(alice, added(alice, receiver.url(f"/slow/{number}")))
    receiver.releases = "/charlies"
    send_test(charlie, added(charlie, receiver.url("/charlies")))
    dispatch.run()
    assert "/charlies" in receiver.paths()[: delivery_queue.SHARE + 1]
    states = WebhookDelivery.objects.values_list("state", flat=True)
    assert set(states) == {"delivered"}


def test_an_organization_has_a_share_and_an_endpoint_one_request_at_a_time(
    alice: User, charlie: User, receiver: Receiver
) -> None:
    first = added(alice, receiver.url("/a"))
    for webhook in (
        first,
        first,
        added(alice, receiver.url("/b")),
        added(alice, receiver.url("/c")),
    ):
        send_test(alice, webhook)
    send_test(charlie, added(charlie, receiver.url("/charlies")))
    claimed = delivery_queue.claim(10, now=timezone.now())
    urls = [claim.endpoint.url.rpartition("/")[2] for claim in claimed]
    assert len(urls) == delivery_queue.SHARE + 1
    assert sorted(set(urls)) == sorted(urls)
    assert "charlies" in urls
    # Until one of them is settled there is nothing more for either.
    assert delivery_queue.claim(10, now=timezone.now()) == []


def test_an_endpoint_that_fails_is_left_alone_for_a_while(alice: User, receiver: Receiver) -> None:
    receiver.statuses["/"] = 503
    webhook = added(alice, receiver.url())
    for _ in range(3):
        send_test(alice, webhook)
    dispatch.run()
    assert len(receiver.messages) == 1
    now = timezone.now()
    assert delivery_queue.claim(10, now=now) == []
    assert len(delivery_queue.claim(10, now=now + timedelta(seconds=6))) == 1


def test_eight_attempts_in_about_a_day_then_it_has_failed(alice: User, receiver: Receiver) -> None:
    receiver.statuses["/"] = 500
    webhook = added(alice, receiver.url())
    sent = send_test(alice, webhook)
    waited_s = 0.0
    for _ in range(8):
        dispatch.run()
        row = WebhookDelivery.objects.get()
        if row.next_attempt_at is not None:
            waited_s += (row.next_attempt_at - timezone.now()).total_seconds()
        make_due()
    shown = delivery(alice, webhook, sent)
    assert (shown["state"], shown["attempts"]) == ("failed", 8)
    assert 22 * 3600 < waited_s < 26 * 3600
    dispatch.run()
    assert len(receiver.messages) == 8
    # Sent again by hand, it has eight more, with the first waits.
    signed_in(alice).call("POST", f"{PATH}/{webhook['id']}/deliveries/{sent}/resend")
    make_due()
    dispatch.run()
    row = WebhookDelivery.objects.get()
    assert (row.state, row.attempts) == ("queued", 9)
    assert row.next_attempt_at is not None
    assert (row.next_attempt_at - timezone.now()).total_seconds() < 70


def test_a_dead_process_leaves_its_delivery_to_another(alice: User, receiver: Receiver) -> None:
    webhook = added(alice, receiver.url())
    send_test(alice, webhook)
    (lost,) = delivery_queue.claim(10, now=timezone.now())
    assert delivery_queue.maintain(now=timezone.now()) is False
    WebhookDelivery.objects.update(claimed_at=timezone.now() - timedelta(minutes=6))
    assert delivery_queue.maintain(now=timezone.now()) is True
    dispatch.run()
    # What the first one says then, late, changes nothing.
    delivery_queue.settle(lost, egress.WebhookAnswer(500, "", 1), now=timezone.now())
    assert WebhookDelivery.objects.get().state == "delivered"


def test_a_late_success_counts_and_the_event_is_not_sent_again(
    alice: User, receiver: Receiver
) -> None:
    send_test(alice, added(alice, receiver.url()))
    (late,) = delivery_queue.claim(10, now=timezone.now())
    assert delivery_queue.maintain(now=timezone.now() + timedelta(minutes=6)) is True
    delivery_queue.settle(late, egress.WebhookAnswer(200, "", 1), now=timezone.now())
    make_due()
    dispatch.run()
    assert WebhookDelivery.objects.get().state == "delivered"
    assert receiver.messages == []


@pytest.mark.parametrize("lost", ["body", "secret"])
def test_what_cannot_be_decrypted_is_sent_later_and_stops_no_other(
    alice: User, charlie: User, receiver: Receiver, lost: str
) -> None:
    bad, good = added(alice, receiver.url("/bad")), added(charlie, receiver.url("/good"))
    unreadable, sent = send_test(alice, bad), send_test(charlie, good)
    # A process that has not been restarted yet does not have a new key.
    rows: Any = (
        WebhookDelivery.objects.filter(endpoint_id=bad["id"])
        if lost == "body"
        else WebhookEndpoint.objects.filter(pk=bad["id"])
    )
    (readable,) = rows.values_list(lost, flat=True)
    rows.update(**{lost: "x"})
    dispatch.run()
    shown = delivery(alice, bad, unreadable)
    assert (shown["state"], shown["last_error"], shown["log"]) == ("queued", "unreadable", [])
    assert delivery(charlie, good, sent)["state"] == "delivered"
    # The endpoint is not to blame.
    assert not WebhookEndpoint.objects.filter(failures__gt=0).exists()

    rows.update(**{lost: readable})
    WebhookDelivery.objects.filter(endpoint_id=bad["id"]).update(next_attempt_at=timezone.now())
    dispatch.run()
    assert delivery(alice, bad, unreadable)["state"] == "delivered"


def test_an_endpoint_that_fails_for_days_is_switched_off_with_a_mail(
    alice: User, bob: User, receiver: Receiver
) -> None:
    receiver.statuses["/"] = 500
    webhook = added(alice, receiver.url())
    send_test(alice, webhook)
    dispatch.run()
    since = timezone.now() - timedelta(days=3)
    WebhookEndpoint.objects.update(failing_since=since)
    make_due()
    send_test(alice, webhook)
    dispatch.run()
    shown = signed_in(alice).get(f"{PATH}/{webhook['id']}").body
    assert (shown["state"], shown["disabled_reason"]) == ("disabled", "failing")
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {"failed"}
    (mail,) = inbox.messages("mail", "webhook_disabled")
    assert (mail["to"], mail["context"]["host"]) == ("alice@example.com", "127.0.0.1")
    event = AuditEvent.objects.get(tag="system:webhook:disable")
    assert event.data == {"webhook": webhook["id"], "reason": "failing"}


def test_one_success_ends_the_count_of_days(alice: User, receiver: Receiver) -> None:
    webhook = added(alice, receiver.url())
    WebhookEndpoint.objects.update(failing_since=timezone.now() - timedelta(days=9), failures=7)
    send_test(alice, webhook)
    dispatch.run()
    row = WebhookEndpoint.objects.get()
    assert (row.state, row.failing_since, row.failures) == ("enabled", None, 0)


def test_an_endpoint_that_is_gone_is_disabled_immediately(alice: User, receiver: Receiver) -> None:
    receiver.statuses["/"] = 410
    webhook = added(alice, receiver.url())
    send_test(alice, webhook)
    dispatch.run()
    shown = signed_in(alice).get(f"{PATH}/{webhook['id']}").body
    assert (shown["state"], shown["disabled_reason"]) == ("disabled", "gone")


def test_a_result_that_cannot_be_recorded_costs_no_other_organization_its_own(
    alice: User, charlie: User, receiver: Receiver
) -> None:
    """The notice of the disabled endpoint has no address to go to."""
    receiver.statuses["/gone"] = 410
    send_test(alice, added(alice, receiver.url("/gone")))
    webhook = added(charlie, receiver.url("/"))
    sent = send_test(charlie, webhook)
    User.objects.filter(pk=alice.pk).update(email="no address")
    dispatch.run()
    assert delivery(charlie, webhook, sent)["state"] == "delivered"
    assert WebhookDelivery.objects.exclude(pk=sent).get().state == "sending"


def test_an_endpoint_that_is_removed_in_the_meantime_leaves_nothing(
    alice: User, receiver: Receiver
) -> None:
    send_test(alice, added(alice, receiver.url()))
    (claimed,) = delivery_queue.claim(10, now=timezone.now())
    WebhookEndpoint.objects.all().delete()
    delivery_queue.settle(claimed, egress.WebhookAnswer(200, "", 1), now=timezone.now())
    assert not WebhookDelivery.objects.exists()


def test_old_deliveries_are_forgotten(alice: User, receiver: Receiver) -> None:
    webhook = added(alice, receiver.url())
    send_test(alice, webhook)
    dispatch.run()
    assert delivery_queue.maintain(now=timezone.now() + timedelta(days=29)) is False
    assert WebhookDelivery.objects.exists()
    delivery_queue.maintain(now=timezone.now() + timedelta(days=31))
    assert not WebhookDelivery.objects.exists()


def test_the_webhooks_of_an_organization_are_limited(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.webhooks.endpoints.WEBHOOKS_PER_ORGANIZATION", 1)
    added(alice, "https://hooks.example.com/")
    assert asked(alice, "https://hooks.example.com/").code == "too_many_webhooks"
    added(charlie, "https://hooks.example.com/")


def test_the_oldest_events_are_dropped_when_too_many_wait(
    alice: User, charlie: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.webhooks.events.QUEUE_LIMIT", 2)
    webhook, other = added(alice, receiver.url()), added(charlie, receiver.url("/other"))
    kept = send_test(charlie, other)
    first, second, third = (send_test(alice, webhook) for _ in range(3))

    dropped = delivery(alice, webhook, first)

    assert (dropped["state"], dropped["last_error"]) == ("failed", "queue_full")
    for who, of, sent in (
        (alice, webhook, second),
        (alice, webhook, third),
        (charlie, other, kept),
    ):
        assert delivery(who, of, sent)["state"] == "queued"
    # What is being sent is not touched, and counts no more.
    assert len(delivery_queue.claim(10, now=timezone.now())) == 2
    fourth = send_test(alice, webhook)
    states = [delivery(alice, webhook, sent)["state"] for sent in (second, third, fourth)]
    assert states == ["sending", "queued", "queued"]
    # A dropped one is there, and can be sent again.
    path = f"{PATH}/{webhook['id']}/deliveries/{first}/resend"
    assert signed_in(alice).call("POST", path).body["state"] == "queued"


def test_test_events_have_a_limit_by_the_hour(
    alice: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.webhooks.endpoints.SENDS_AN_HOUR", 2)
    webhook = added(alice, receiver.url())
    send_test(alice, webhook)
    send_test(alice, webhook)
    answer = signed_in(alice).call("POST", f"{PATH}/{webhook['id']}/test")
    assert answer.code == "webhook_sent_too_often"


def test_no_secret_and_no_body_is_shown_where_a_claim_is_logged(
    alice: User, receiver: Receiver
) -> None:
    webhook = added(alice, receiver.url())
    send_test(alice, webhook)
    (claimed,) = delivery_queue.claim(10, now=timezone.now())
    assert webhook["secret"] not in repr(claimed)
    assert "webhook.test" not in repr(claimed)
