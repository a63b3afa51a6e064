"""Links of recovery's mails: they lead to the console, and opening one changes nothing."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from recovery.models import Recovery
from tests.cast import HANDLER, Answer, Caller
from tests.recovery.steps.test_lost_factor import delayed
from tests.recovery.support import (
    PREFIX,
    complete,
    initiate,
    mailed_token,
    proven,
    sent,
    with_factor,
    work,
)
from tests.twofactor.holder import Holder

pytestmark = pytest.mark.django_db
PLACE = "https://zonal.example.com"


@pytest.fixture(autouse=True)
def _public(settings: Settings) -> None:
    settings.PUBLIC_URL = PLACE


def brought(link: str, page: str) -> dict[str, str]:
    """Return what a link brings to its page, and to no server before it."""
    parts = urlsplit(link)
    assert (f"{parts.scheme}://{parts.netloc}", parts.path) == (PLACE, page)
    assert not parts.query
    return dict(parse_qsl(parts.fragment, strict_parsing=True))


def opened(link: str) -> int:
    """Open a link as a browser does: without its fragment."""
    client = Client()
    client.handler = HANDLER
    return client.get(urlsplit(link).path).status_code


def test_the_link_contains_all_that_verification_needs(alice: User) -> None:
    initiate(alice)
    link = sent("recovery_token")[-1]["context"]["link"]
    found = brought(link, "/console/recovery")
    assert set(found) == {"recovery", "token", "org"}
    assert (found["token"], found["org"]) == (mailed_token(), str(alice.organization_id))
    assert opened(link) == 200
    assert Recovery.objects.get().verified_at is None
    body = {"recovery_id": found["recovery"], "token": found["token"]}
    answer = Caller().post(f"{PREFIX}/verify", body)
    assert (answer.status, answer.body["next"]) == (200, "password")


def test_the_secrets_of_the_link_are_deleted_when_the_mail_is_queued(alice: User) -> None:
    initiate(alice)
    assert Recovery.objects.get().request == ""


def test_the_link_does_not_follow_the_request(alice: User, settings: Settings) -> None:
    """A request with another Host must not change the links in mails."""
    settings.ALLOWED_HOSTS = ["*"]
    body = {"org_id": alice.organization_id, "email": alice.email, "method": "email"}
    answer = Caller().post(f"{PREFIX}/initiate", body, HOST="evil.example")
    assert answer.status == 202
    work()
    assert sent("recovery_token")[-1]["context"]["link"].startswith(f"{PLACE}/console/")


def test_a_delayed_recovery_is_cancelled_by_its_link(holder: Holder) -> None:
    delayed(holder.user)
    context = sent("recovery_started")[-1]["context"]
    found = brought(context["cancel_link"], "/console/recovery/cancel")
    assert found == {"token": context["cancel_token"]}
    assert opened(context["cancel_link"]) == 200
    assert Recovery.objects.get().ended_at is None
    assert cancelled(found["token"]).status == 204
    assert Recovery.objects.get().end_reason == "cancelled"


def cancelled(token: str) -> Answer:
    return Caller().post(f"{PREFIX}/cancel", {"token": token})


@pytest.mark.usefixtures("sms")
def test_a_recovery_by_text_message_is_cancelled_by_the_link_of_its_notice(alice: User) -> None:
    with_factor(alice, "sms", "+4915112345678")
    initiate(alice, method="sms")
    link = sent("recovery_started", to=alice.email)[-1]["context"]["cancel_link"]
    assert cancelled(brought(link, "/console/recovery/cancel")["token"]).status == 204


@pytest.mark.usefixtures("sms")
def test_the_text_message_about_a_delay_names_the_page_to_cancel_it(holder: Holder) -> None:
    with_factor(holder.user, "sms", "+4915112345678")
    delayed(holder.user)
    text = sent()[-1]["text"]
    assert f"{PLACE}/console/recovery/cancel with this code: " in text
    assert cancelled(text.rsplit(" ", 1)[1]).status == 204


def test_every_notice_links_to_the_console(alice: User) -> None:
    complete(proven(alice))
    notice = sent("recovery_completed")[-1]
    assert notice["context"]["security_link"] == f"{PLACE}/console/security"
