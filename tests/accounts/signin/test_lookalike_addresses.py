"""Letters whose capitals are ASCII: different addresses that a database considers equal."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from accounts.models import User
from accounts.signin import credentials
from environments.models import Organization
from outbox.models import Delivery
from tests.cast import PASSWORD, Caller, member
from tests.recovery.support import initiate, log_in, sent

pytestmark = pytest.mark.django_db
# PostgreSQL's UPPER() of each is alice@its-example.com's.
LOOKALIKES = [
    "al\u0131ce@its-example.com",
    "alice@\u0131ts-example.com",
    "alice@it\u017f-example.com",
]


@pytest.fixture
def alice(home: Organization) -> User:
    return member(home, "alice@its-example.com", password=PASSWORD)


@pytest.mark.parametrize("email", LOOKALIKES)
def test_a_lookalike_address_finds_no_account(alice: User, email: str) -> None:
    assert User.objects.filter(email__iexact=email).exists()
    assert credentials.find(email) is None
    assert credentials.find("ALICE@ITS-Example.COM ") == alice
    body = {"email": email, "password": PASSWORD}
    assert Caller().post("/v1/auth/login", body).code == "invalid_credentials"


def test_a_slowed_account_is_slowed_by_every_spelling(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.credentials.LOGINS_PER_ACCOUNT", 2)
    with time_machine.travel(timezone.now(), tick=False):
        for _ in range(3):
            log_in(alice, "a guess")
        for email in [*LOOKALIKES, "Alice@its-example.com"]:
            body = {"email": email, "password": PASSWORD}
            assert Caller().post("/v1/auth/login", body).code == "invalid_credentials"
    with time_machine.travel(timezone.now() + timedelta(minutes=1)):
        assert log_in(alice).status == 200


@pytest.mark.parametrize("email", LOOKALIKES)
def test_a_lookalike_address_recovers_no_account(alice: User, email: str) -> None:
    assert initiate(alice, email=email).status in {202, 400}
    assert sent("recovery_token") == []


@pytest.mark.parametrize("email", LOOKALIKES)
def test_a_lookalike_address_signs_up_as_a_new_account(alice: User, email: str) -> None:
    """One of the two has the address; the later one gets, as ever, the answer that it is taken."""
    answer = Caller().post("/v1/auth/signup", {"email": email, "password": PASSWORD})
    assert answer.status in {400, 409}
    assert User.objects.count() == 1


# Mail to each would go to the domain in the second column, or into the relay's own network.
OTHERWISE_MAILED = [
    ("victim@\uff45xample.com", "example.com"),
    ("victim@exam\u00adple.com", "example.com"),
    ("victim@stra\u00dfe.example", "strasse.example"),
    ("victim@b\u00fccher.example", "xn--bcher-kva.example"),
    ("victim@[127.0.0.1]", "[127.0.0.1]"),
    ('"\x1b[2J"@example.com', "example.com"),
]


@pytest.mark.parametrize(("email", "domain"), OTHERWISE_MAILED, ids=ascii)
def test_an_address_is_refused_if_mail_to_it_goes_elsewhere(email: str, domain: str) -> None:
    assert email.rpartition("@")[2].encode("idna").decode() == domain
    body = {"email": email, "password": PASSWORD}
    for path in ("/v1/auth/signup", "/v1/auth/signup/link"):
        answer = Caller().post(path, body if path.endswith("signup") else {"email": email})
        assert (answer.status, answer.body["errors"][0]["field"]) == (400, "email"), path
    assert not User.objects.exists()
    assert not Delivery.objects.exists()


def test_a_domain_beyond_ascii_is_written_in_its_xn_form() -> None:
    body = {"email": "dora@xn--bcher-kva.example", "password": PASSWORD}
    assert Caller().post("/v1/auth/signup", body).status == 201
