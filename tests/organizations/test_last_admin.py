"""An organization keeps an admin, also with concurrent changes."""

from typing import Any

import pytest

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Organization
from tests import inbox
from tests.cast import Answer, member, signed_in, with_proven_address
from tests.parallel import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _accepted(alice: User) -> None:
    with_proven_address(alice)


DEEDS: list[tuple[str, dict[str, Any] | None]] = [
    ("PATCH", {"roles": ["reader"]}),
    ("PATCH", {"disabled": True}),
    ("DELETE", None),
]


def do(by: User, to: User, method: str, body: dict[str, Any] | None) -> Answer:
    return signed_in(by).call(method, f"/v1/members/{to.pk}", body)


def admins(of: Organization) -> int:
    rows = User.objects.filter(organization_id=of.pk)
    return rows.filter(roles__contains=["admin"], is_active=True).count()


@pytest.mark.parametrize(("method", "body"), DEEDS)
def test_the_last_admin_stays(
    home: Organization, alice: User, bob: User, method: str, body: dict[str, Any] | None
) -> None:
    answer = do(alice, alice, method, body)
    assert (answer.status, answer.code) == (409, "last_admin")
    assert admins(home) == 1
    assert inbox.messages() == []
    assert not AuditEvent.objects.filter(tag__startswith="api:member").exists()


@pytest.mark.parametrize(("method", "body"), DEEDS)
def test_a_disabled_admin_is_none(
    home: Organization, alice: User, method: str, body: dict[str, Any] | None
) -> None:
    other = with_proven_address(member(home, "eve@example.com"))
    User.objects.filter(pk=other.pk).update(is_active=False)
    assert do(alice, alice, method, body).code == "last_admin"


@pytest.mark.parametrize(("method", "body"), DEEDS)
@pytest.mark.parametrize("lost", [{"email": ""}, {"password": "!", "email_verified_at": None}])
def test_an_admin_who_cannot_sign_in_is_none(
    home: Organization, alice: User, method: str, body: Any, lost: dict[str, Any]
) -> None:
    """Its address went to another person, or its invitation was never accepted."""
    other = with_proven_address(member(home, "eve@example.com"))
    User.objects.filter(pk=other.pk).update(**lost)
    assert do(alice, alice, method, body).code == "last_admin"


@pytest.mark.parametrize(("method", "body"), DEEDS)
def test_a_derived_admin_is_none_since_its_role_may_go(
    home: Organization, alice: User, bob: User, method: str, body: dict[str, Any] | None
) -> None:
    User.objects.filter(pk=with_proven_address(bob).pk).update(derived_roles=["admin"])
    assert do(bob, alice, method, body).code == "last_admin"
    assert do(alice, bob, "PATCH", {"roles": ["admin"]}).status == 200
    assert do(bob, alice, method, body).status in {200, 204}


@pytest.mark.parametrize(("method", "body"), DEEDS)
def test_one_of_two_admins_may_go(
    home: Organization, alice: User, method: str, body: dict[str, Any] | None
) -> None:
    with_proven_address(member(home, "eve@example.com"))
    assert do(alice, alice, method, body).status in {200, 204}
    assert admins(home) == 1


def test_another_organizations_admin_does_not_count(alice: User, charlie: User) -> None:
    assert do(alice, alice, "DELETE", None).code == "last_admin"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "body"), DEEDS)
def test_two_admins_who_remove_each_other_concurrently_leave_one(
    home: Organization, alice: User, method: str, body: dict[str, Any] | None
) -> None:
    eve = with_proven_address(member(home, "eve@example.com"))
    callers = {alice.pk: signed_in(alice), eve.pk: signed_in(eve)}

    def against(by: User, to: User) -> Answer:
        return callers[by.pk].call(method, f"/v1/members/{to.pk}", body)

    answers = at_once(lambda: against(alice, eve), lambda: against(eve, alice))
    assert admins(home) == 1
    statuses = sorted(answer.status for answer in answers)
    assert statuses[0] in {200, 204}
    # The second request came too late: it would remove the last admin, or its caller is no longer
    # an admin or a member.
    assert answers[0].status != answers[1].status
    assert statuses[1] in {401, 403, 409}


@pytest.mark.django_db(transaction=True)
def test_ten_admins_stepping_down_concurrently_leave_one(home: Organization, alice: User) -> None:
    addresses = [f"admin{n}@example.com" for n in range(9)]
    others = [with_proven_address(member(home, address)) for address in addresses]
    callers = [(signed_in(user), user) for user in [alice, *others]]
    answers = at_once(
        *(
            lambda caller=caller, user=user: caller.call(
                "PATCH", f"/v1/members/{user.pk}", {"roles": ["reader"]}
            )
            for caller, user in callers
        )
    )
    assert sorted(answer.status for answer in answers) == [200] * 9 + [409]
    assert admins(home) == 1
