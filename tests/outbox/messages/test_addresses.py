"""Mail goes to the address that is stored: every other spelling is refused where it comes in."""

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from accounts.models import User
from oauth.providers.profile import email_or_blank
from organizations.models import Invitation
from outbox.messages import queue
from outbox.messages.templates import Scalar
from outbox.models import Delivery
from tests.accounts.profile.support import begin_change
from tests.cast import PASSWORD, Answer, Caller, signed_in, with_proven_address
from tests.organizations.support import invite
from tests.outbox.messages.support import CODE, Mailbox, run

pytestmark = pytest.mark.django_db

PLAIN = [
    "a=b@example.com",
    "x?y@example.com",
    "=?x@example.com",
    "o'brien@example.com",
    "plus+tag@example.com",
    "!#$%&'*+-/=?^_`{|}~@example.com",
    "a" * 64 + "@example.com",
    "dora@localhost",
]
# The mail library sends each to another mailbox, or cannot send to it at all.
SENT_ELSEWHERE = [
    "=?utf-8?q?alice?=@corp.example",
    "=?utf-8?b?YWxpY2U=?=@corp.example",
    "=?utf-8?q?alice?=.smith@corp.example",
    "=?utf-8?q?a=40evil.example=3e?=@corp.example",
    "=?utf-8?q?a=0d=0a?=@corp.example",
    "=?utf-8?b?=40?=@corp.example",
    "=?utf-8*en?q??=@corp.example",
    '"alice"@corp.example',
    '"=?utf-8?q?alice?="@corp.example',
    '"al\\ice"@corp.example',
    '"al ice"@corp.example',
    "a" * 65 + "@corp.example",
]


@pytest.mark.parametrize("email", PLAIN)
def test_a_plain_address_gets_its_mail(mailbox: Mailbox, email: str) -> None:
    body = {"email": email, "password": PASSWORD}
    assert Caller().post("/v1/auth/signup", body).status == 201
    assert Caller().post("/v1/auth/signup/link", {"email": email}).status == 202
    for delivery in Delivery.objects.all():
        assert run(delivery).state == "sent"
    assert User.objects.get().email == email
    assert mailbox.recipients == [email, email]


def doors(alice: User, email: str) -> dict[str, Answer]:
    """Give an address to every request that takes one to mail to."""
    recovery = {"org_id": alice.organization_id, "email": email, "method": "email"}
    password = {"email": email, "password": PASSWORD}
    return {
        "sign-up": Caller().post("/v1/auth/signup", password),
        "link": Caller().post("/v1/auth/signup/link", {"email": email}),
        "invitation": invite(alice, email),
        "change": begin_change(signed_in(alice), email),
        "recovery": Caller().post("/v1/auth/recovery/initiate", recovery),
    }


@pytest.mark.parametrize("email", SENT_ELSEWHERE, ids=ascii)
def test_an_address_that_mail_would_not_reach_is_refused(alice: User, email: str) -> None:
    with_proven_address(alice)
    for name, answer in doors(alice, email).items():
        assert (answer.status, answer.body["errors"][0]["field"]) == (400, "email"), name
    assert User.objects.count() == 1
    assert not Invitation.objects.exists()
    assert not Delivery.objects.exists()
    assert email_or_blank(email) == ""


@pytest.mark.parametrize("email", SENT_ELSEWHERE, ids=ascii)
def test_the_commands_refuse_such_an_address(alice: User, email: str, tmp_path: Path) -> None:
    of, file = str(alice.organization_id), tmp_path / "members.csv"
    quoted = email.replace('"', '""')
    file.write_text(f'email,roles\n"{quoted}",reader\n')
    for words in (
        ("createuser", email, "--organization", of, "--role", "reader", "--no-password"),
        ("createorganization", "New", "--admin", email),
        ("createstaff", email),
        ("importmembers", str(file), "--organization", of),
    ):
        with pytest.raises(CommandError, match="is not an e-mail address"):
            call_command(*words, stdout=io.StringIO())
    assert User.objects.count() == 1


@pytest.mark.parametrize("email", ["root@localhost", "root@LOCALHOST"])
def test_the_mailboxes_of_the_relay_are_refused_in_production(
    alice: User, settings: Settings, email: str
) -> None:
    settings.IS_PRODUCTION = True
    with_proven_address(alice)
    assert {answer.status for answer in doors(alice, email).values()} == {400}
    assert email_or_blank(email) == ""


def test_an_address_that_was_stored_before_gets_no_mail(mailbox: Mailbox, alice: User) -> None:
    """The library would send to another mailbox, or raise an error at each attempt."""
    for email in ("=?utf-8?q?alice?=@corp.example", "=?utf-8?q?a=0d=0a?=@corp.example"):
        context: dict[str, Scalar] = {"code": CODE, "purpose": "to sign in", "minutes": 10}
        delivery = queue.send_mail(email, "email_code", context, organization_id=None)
        refused = run(delivery)
        assert (refused.state, refused.error) == ("given_up", "mail_address_refused")
    assert not mailbox.recipients
