"""Webhooks: added, sent to, signed, rotated and removed."""

import base64
import hashlib
import hmac
from datetime import timedelta

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from accounts.models import User
from audit.models import AuditEvent
from outbox.models import WebhookDelivery, WebhookEndpoint
from outbox.webhooks import dispatch
from tests.cast import member, signed_in
from tests.outbox.webhooks.receiver import Message, Receiver
from tests.outbox.webhooks.support import PATH, added, asked, delivery, send_test

pytestmark = pytest.mark.django_db


def is_signed(message: Message, secret: str) -> bool:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    named = (message.headers["webhook-id"], message.headers["webhook-timestamp"])
    signed = f"{named[0]}.{named[1]}.".encode() + message.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in message.headers["webhook-signature"].split(" ")


def test_an_event_is_sent_signed_and_logged_without_its_body(
    alice: User, receiver: Receiver
) -> None:
    webhook = added(alice, receiver.url("/hook"))
    dora = member(alice.organization, "dora@example.com", role="reader")
    dispatch.run()
    (message,) = receiver.messages
    assert message.json["type"] == "member.added"
    assert message.json["data"] == {
        "user_id": str(dora.pk),
        "email": "dora@example.com",
        "roles": ["reader"],
    }
    assert is_signed(message, webhook["secret"])
    assert abs(int(message.headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    answer = signed_in(alice).get(f"{PATH}/{webhook['id']}/deliveries")
    (shown,) = answer.body["results"]
    assert (shown["state"], shown["last_status"], shown["attempts"]) == ("delivered", 200, 1)
    assert shown["message_id"] == message.headers["webhook-id"]
    assert [entry["status"] for entry in shown["log"]] == [200]
    assert "dora@example.com" not in answer.raw.content.decode()


def test_an_event_goes_to_those_who_asked_for_it_and_to_no_other_organization(
    alice: User, charlie: User, receiver: Receiver
) -> None:
    added(alice, receiver.url("/one"))
    added(alice, receiver.url("/two"), "member.added", "member.removed")
    added(alice, receiver.url("/three"), "member.removed")
    added(charlie, receiver.url("/charlies"))
    member(alice.organization, "dora@example.com")
    dispatch.run()
    assert sorted(receiver.paths()) == ["/one", "/two"]


def test_members_that_change_and_go_are_events(alice: User, bob: User, receiver: Receiver) -> None:
    added(alice, receiver.url(), "member.changed", "member.removed")
    admin = signed_in(alice)
    admin.call("PATCH", f"/v1/members/{bob.pk}", {"roles": ["operator"]})
    admin.call("PATCH", f"/v1/members/{bob.pk}", {"labels": ["no event"]})
    admin.call("PATCH", f"/v1/members/{bob.pk}", {"disabled": True})
    admin.call("DELETE", f"/v1/members/{bob.pk}")
    dispatch.run()
    emitted = [(each.json["type"], each.json["data"]) for each in receiver.messages]
    about = {"user_id": str(bob.pk), "email": "bob@example.com"}
    assert emitted == [
        ("member.changed", about | {"roles": ["operator"], "disabled": False}),
        ("member.changed", about | {"roles": ["operator"], "disabled": True}),
        ("member.removed", about),
    ]


def test_what_is_rolled_back_is_not_sent(
    alice: User,
    receiver: Receiver,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    added(alice, receiver.url())
    with django_capture_on_commit_callbacks() as callbacks, transaction.atomic():
        member(alice.organization, "dora@example.com")
        transaction.set_rollback(True)
    assert callbacks == []
    assert not WebhookDelivery.objects.exists()


def test_a_commit_wakes_one_dispatcher(
    alice: User,
    receiver: Receiver,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    from procrastinate.contrib.django.models import ProcrastinateJob

    added(alice, receiver.url())
    with django_capture_on_commit_callbacks(execute=True):
        member(alice.organization, "dora@example.com")
        member(alice.organization, "emil@example.com")
    jobs = ProcrastinateJob.objects.filter(task_name="outbox.webhooks.dispatch")
    assert jobs.count() == 1


def test_the_secret_is_shown_once_and_stored_encrypted(alice: User, receiver: Receiver) -> None:
    webhook = added(alice, receiver.url(), description="chat")
    secret = webhook["secret"]
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    admin = signed_in(alice)
    shown = admin.get(PATH).raw.content.decode()
    shown += admin.get(f"{PATH}/{webhook['id']}").raw.content.decode()
    shown += str(WebhookEndpoint.objects.values()) + str(AuditEvent.objects.values())
    assert secret.removeprefix("whsec_") not in shown


def test_a_rotated_secret_signs_beside_the_former_one_for_a_day(
    alice: User, receiver: Receiver
) -> None:
    webhook = added(alice, receiver.url())
    admin = signed_in(alice)
    rotated = admin.post(f"{PATH}/{webhook['id']}/secret/rotate").body
    send_test(alice, webhook)
    dispatch.run()
    assert is_signed(receiver.messages[-1], rotated["secret"])
    assert is_signed(receiver.messages[-1], webhook["secret"])
    with time_machine.travel(timezone.now() + timedelta(hours=24, seconds=1)):
        send_test(alice, webhook)
        dispatch.run()
    assert is_signed(receiver.messages[-1], rotated["secret"])
    assert not is_signed(receiver.messages[-1], webhook["secret"])


def test_a_leaked_secret_ends_immediately(alice: User, receiver: Receiver) -> None:
    webhook = added(alice, receiver.url())
    body = {"keep_previous": False}
    signed_in(alice).post(f"{PATH}/{webhook['id']}/secret/rotate", body)
    send_test(alice, webhook)
    dispatch.run()
    assert not is_signed(receiver.messages[-1], webhook["secret"])


def test_a_webhook_is_changed_switched_off_and_removed(alice: User, receiver: Receiver) -> None:
    webhook = added(alice, receiver.url("/old"))
    admin, path = signed_in(alice), f"{PATH}/{webhook['id']}"
    changes = {"url": receiver.url("/new"), "events": ["member.removed", "member.added"]}
    changed = admin.call("PATCH", path, changes).body
    assert changed["events"] == ["member.added", "member.removed"]
    member(alice.organization, "dora@example.com")
    off = admin.call("PATCH", path, {"state": "disabled"}).body
    assert off["disabled_reason"] == "by_admin"
    assert admin.call("POST", f"{path}/test").code == "webhook_is_off"
    # What waited for it has failed, and nothing new begins.
    (waited,) = admin.get(f"{path}/deliveries").body["results"]
    assert (waited["state"], waited["last_error"]) == ("failed", "switched_off")
    again = admin.call("POST", f"{path}/deliveries/{waited['id']}/resend")
    assert again.code == "webhook_is_off"
    member(alice.organization, "emil@example.com")
    dispatch.run()
    assert receiver.messages == []
    admin.call("PATCH", path, {"state": "enabled"})
    send_test(alice, webhook)
    dispatch.run()
    assert receiver.paths() == ["/new"]
    assert admin.call("DELETE", path).status == 204
    assert admin.get(path).code == "webhook_not_found"
    assert not WebhookDelivery.objects.exists()


def test_a_delivery_is_sent_again_with_its_id(alice: User, receiver: Receiver) -> None:
    webhook = added(alice, receiver.url("/hook"))
    sent = send_test(alice, webhook)
    dispatch.run()
    answer = signed_in(alice).call("POST", f"{PATH}/{webhook['id']}/deliveries/{sent}/resend")
    assert answer.status == 202
    dispatch.run()
    first, second = receiver.messages
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    shown = delivery(alice, webhook, sent)
    assert (shown["state"], shown["attempts"], len(shown["log"])) == ("delivered", 2, 2)
    nobodys = "00000000-0000-7000-8000-000000000000"
    path = f"{PATH}/{webhook['id']}/deliveries/{nobodys}/resend"
    assert signed_in(alice).call("POST", path).code == "webhook_delivery_not_found"


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "https://user:secret@hooks.example.com/",
        "https://hooks.example.com/#part",
        "https://hooks.example.com:25/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://127.0.0.1:8443/",
        "https:///path",
        "https://bücher.example/",
        "https://hooks.example.com/a b",
        "ftp://hooks.example.com/",
        "hooks.example.com",
        "https://hooks.example.com:port/",
    ],
)
def test_a_url_that_is_not_public_https_is_refused_in_production(
    alice: User, settings: Settings, url: str
) -> None:
    settings.IS_PRODUCTION = True
    answer = asked(alice, url)
    assert answer.status == 400
    assert [error["field"] for error in answer.body["errors"]] == ["url"]
    assert added(alice, "https://hooks.example.com/zonal?key=1")["state"] == "enabled"


def test_a_webhook_needs_events_that_exist(alice: User, receiver: Receiver) -> None:
    assert asked(alice, receiver.url(), "member.eaten").status == 400
    assert signed_in(alice).post(PATH, {"url": receiver.url(), "events": []}).status == 400
