"""Security notices: mailed for each change, and no means to fill somebody else's mailbox."""

import pytest

from accounts.models import User
from outbox.models import Delivery
from tests.cast import PASSWORD, Caller, signed_in
from tests.inbox import notices_to

pytestmark = pytest.mark.django_db
VICTIM = "victim@example.com"


def change_roles(caller: Caller, user: User, *, times: int) -> None:
    """Change the user's own roles back and forth."""
    for number in range(times):
        roles = ["admin", "reader"] if number % 2 else ["admin"]
        answer = caller.call("PATCH", f"/v1/members/{user.pk}", {"roles": roles})
        assert answer.status == 200, answer.body


def test_an_unverified_account_cannot_fill_the_mailbox_of_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("accounts.notices.NOTICES_PER_RECEIVER", 3)
    made = Caller().post("/v1/auth/signup", {"email": VICTIM, "password": PASSWORD})
    attacker = Caller().holding(made)
    change_roles(attacker, User.objects.get(email=VICTIM), times=8)
    assert notices_to(VICTIM).count("roles_changed") == 3
    # Another kind of change is still reported.
    other = {"current_password": PASSWORD, "password": "an even longer staple of batteries"}
    assert attacker.post("/v1/auth/password", other).status == 200
    assert notices_to(VICTIM).count("password_changed") == 1


def test_notices_to_one_address_do_not_use_up_those_of_another(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.notices.NOTICES_PER_RECEIVER", 1)
    owner = signed_in(alice)
    for member in (alice, bob):
        change_roles(owner, member, times=3)
    found = Delivery.objects.filter(template="roles_changed")
    assert set(found.values_list("user_id", flat=True)) == {alice.pk, bob.pk}
    assert found.count() == 2
