"""Domains: claimed, proven by a DNS record, lost without it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import dns.rcode
import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from oauth import tasks
from oauth.models import Domain
from tests.cast import Answer, Caller, member, signed_in
from tests.oauth.domains.nameserver import NameServer
from tests.oauth.fake_providers.google import GoogleServer
from tests.oauth.support import OAuthFlow
from tests.parallel import at_once

DOMAINS = "/v1/domains"


@pytest.fixture
def names(settings: Settings) -> Iterator[NameServer]:
    """Return the configured name server."""
    with NameServer() as server:
        settings.SERVER = replace(settings.SERVER, dns_resolvers=(server.address,))
        yield server


def claim(caller: Caller, domain: str = "example.com", **body: str) -> Answer:
    """Claim a domain."""
    return caller.post(DOMAINS, {"domain": domain} | body)


def publish(names: NameServer, record: dict[str, str]) -> None:
    """Add the record to the zone."""
    assert record["type"] == "TXT"
    names.records[record["name"]] = ["v=spf1 -all", record["value"]]


def verify(caller: Caller, domain_id: str) -> Answer:
    """Ask the platform to verify the domain."""
    return caller.post(f"{DOMAINS}/{domain_id}/verify")


def test_a_domain_is_claimed_and_proven(names: NameServer, alice: User) -> None:
    caller = signed_in(alice)
    claimed = claim(caller, " Example.COM. ", role="operator")
    assert claimed.status == 201
    assert set(claimed.body) == {
        "id",
        "domain",
        "role",
        "status",
        "record",
        "created_at",
        "verified_at",
    }
    assert (claimed.body["domain"], claimed.body["status"]) == ("example.com", "pending")
    assert claimed.body["record"]["name"] == "_zonal-challenge.example.com"
    publish(names, claimed.body["record"])
    proven = verify(caller, claimed.body["id"])
    assert (proven.status, proven.body["status"]) == (200, "verified")
    listed = caller.get(DOMAINS).body["results"]
    assert [(row["domain"], row["role"], row["status"]) for row in listed] == [
        ("example.com", "operator", "verified")
    ]
    tags = set(AuditEvent.objects.values_list("tag", flat=True))
    assert {"api:domain:create", "api:domain:verify"} <= tags


def test_a_user_of_a_proven_domain_joins_the_organization(
    names: NameServer, google: GoogleServer, alice: User
) -> None:
    caller = signed_in(alice)
    claimed = claim(caller).body
    google.person.hd = "example.com"
    publish(names, claimed["record"])
    verify(caller, claimed["id"])
    who = Caller().holding(OAuthFlow("google").sign_in()).get("/v1/whoami").body
    assert (who["org_id"], who["roles"]) == (alice.organization_id, ["reader"])
    assert caller.call("DELETE", f"{DOMAINS}/{claimed['id']}").status == 204
    # Users who joined stay; no one joins any more.
    assert OAuthFlow("google").sign_in().status == 200
    assert not Domain.objects.exists()


@pytest.mark.parametrize(
    "texts",
    [
        None,
        [],
        ["something else"],
        ["zonal-domain-verification=another"],
        ["ZONAL-DOMAIN-VERIFICATION=x"],
    ],
)
def test_a_domain_without_the_record_is_not_proven(
    names: NameServer, alice: User, texts: list[str] | None
) -> None:
    caller = signed_in(alice)
    claimed = claim(caller).body
    if texts is not None:
        names.records[claimed["record"]["name"]] = texts
    answer = verify(caller, claimed["id"])
    assert (answer.status, answer.code) == (409, "domain_unproven")
    assert answer.body["record"] == claimed["record"]
    assert Domain.objects.get().verified_at is None


def test_the_record_of_another_organization_proves_nothing(
    names: NameServer, alice: User, charlie: User
) -> None:
    theirs = claim(signed_in(charlie)).body
    mine = claim(signed_in(alice)).body
    assert mine["record"]["value"] != theirs["record"]["value"]
    publish(names, theirs["record"])
    assert verify(signed_in(alice), mine["id"]).code == "domain_unproven"


def test_a_domain_is_proven_by_one_organization(
    names: NameServer, alice: User, charlie: User
) -> None:
    theirs = claim(signed_in(charlie)).body
    publish(names, theirs["record"])
    assert verify(signed_in(charlie), theirs["id"]).status == 200
    mine = claim(signed_in(alice)).body
    publish(names, mine["record"])
    answer = verify(signed_in(alice), mine["id"])
    assert (answer.status, answer.code) == (409, "domain_taken")
    assert "Charlie" not in str(answer.body)


def test_a_domain_is_claimed_once(names: NameServer, alice: User) -> None:
    caller = signed_in(alice)
    claim(caller)
    answer = claim(caller, "EXAMPLE.com")
    assert (answer.status, answer.code) == (409, "domain_taken")
    assert Domain.objects.count() == 1


@pytest.mark.parametrize(
    "domain",
    [
        "",
        "example",
        "exa mple.com",
        "-example.com",
        "example.com/path",
        "https://example.com",
        "user@example.com",
        "192.0.2.1",
        "*.example.com",
        "münchen.example",
        "x" * 64 + ".com",
        "a." * 126 + "com.example",
        "example.com\x00",
        7,
    ],
)
def test_a_malformed_domain_is_refused(names: NameServer, alice: User, domain: object) -> None:
    answer = signed_in(alice).post(DOMAINS, {"domain": domain})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.body["errors"][0]["field"] == "domain"


def test_a_domain_cannot_give_the_admin_role(names: NameServer, alice: User) -> None:
    assert claim(signed_in(alice), role="admin").code == "invalid_request"


def test_claims_are_limited(names: NameServer, alice: User) -> None:
    caller = signed_in(alice)
    for number in range(50):
        assert claim(caller, f"d{number}.example.com").status == 201
    answer = claim(caller)
    assert (answer.status, answer.code) == (409, "too_many_domains")


def test_lookups_are_limited(names: NameServer, alice: User) -> None:
    caller = signed_in(alice)
    claimed = claim(caller).body
    for _ in range(60):
        assert verify(caller, claimed["id"]).code == "domain_unproven"
    assert verify(caller, claimed["id"]).code == "too_many_attempts"
    assert len(names.asked) == 60


def test_a_claim_requires_a_recent_proof(names: NameServer, alice: User) -> None:
    caller = signed_in(alice)
    Session.objects.update(auth_time=timezone.now() - timedelta(hours=1))
    assert claim(caller).code == "step_up_required"


def test_only_admins_change_domains(names: NameServer, alice: User, home: Organization) -> None:
    claimed = claim(signed_in(alice)).body
    operator = signed_in(member(home, "olga@example.com", role="operator"))
    assert operator.get(DOMAINS).status == 200
    for answer in (
        claim(operator, "example.org"),
        verify(operator, claimed["id"]),
        operator.call("DELETE", f"{DOMAINS}/{claimed['id']}"),
    ):
        assert answer.code == "permission_denied"


def test_the_domain_of_another_organization_is_not_found(
    names: NameServer, alice: User, charlie: User
) -> None:
    theirs = claim(signed_in(charlie)).body
    publish(names, theirs["record"])
    caller = signed_in(alice)
    for name in (theirs["id"], "nonsense"):
        assert verify(caller, name).code == "not_found"
        assert caller.call("DELETE", f"{DOMAINS}/{name}").code == "not_found"
    assert not names.asked
    assert caller.get(DOMAINS).body["results"] == []


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
def test_failing_name_servers_are_distinguished_from_a_missing_record(
    names: NameServer, alice: User, rcode: dns.rcode.Rcode
) -> None:
    caller = signed_in(alice)
    claimed = claim(caller).body
    names.rcode = rcode
    answer = verify(caller, claimed["id"])
    assert (answer.status, answer.code) == (503, "dns_unavailable")
    assert answer.headers["Retry-After"] == "60"


def test_silent_name_servers_end_in_a_timeout(names: NameServer, alice: User) -> None:
    caller = signed_in(alice)
    claimed = claim(caller).body
    names.is_silent = True
    assert verify(caller, claimed["id"]).code == "dns_unavailable"


def test_a_record_among_very_many_is_found(names: NameServer, alice: User) -> None:
    """The answer does not fit into UDP; the resolver asks again over TCP."""
    caller = signed_in(alice)
    claimed = claim(caller).body
    many = [f"record number {number}" for number in range(500)]
    names.records[claimed["record"]["name"]] = [*many, claimed["record"]["value"]]
    assert verify(caller, claimed["id"]).status == 200
    assert len(names.asked) == 2


def only() -> Domain:
    """Return the only domain there is."""
    domain: Domain = Domain.objects.get()
    return domain


def proven(names: NameServer, alice: User) -> Domain:
    """Return a proven domain."""
    claimed = claim(signed_in(alice)).body
    publish(names, claimed["record"])
    assert verify(signed_in(alice), claimed["id"]).status == 200
    return only()


def look_again(*, days: float) -> Domain:
    """Run the daily check some days from now."""
    with time_machine.travel(timezone.now() + timedelta(days=days)):
        tasks.recheck_domains(0)
    return only()


def test_a_domain_without_its_record_for_a_week_is_no_longer_verified(
    names: NameServer, google: GoogleServer, alice: User
) -> None:
    domain = proven(names, alice)
    assert look_again(days=30).verified_at is not None
    names.records.clear()
    assert look_again(days=36).verified_at is not None
    assert look_again(days=38).verified_at is None
    event = AuditEvent.objects.get(tag="sync:domain:lapse")
    assert (event.organization_id, event.data) == (
        domain.organization_id,
        {"domain": "example.com"},
    )
    google.person.hd = "example.com"
    who = Caller().holding(OAuthFlow("google").sign_in()).get("/v1/whoami").body
    assert who["org_id"] != alice.organization_id


def test_failing_name_servers_do_not_end_a_proof(names: NameServer, alice: User) -> None:
    proven(names, alice)
    names.rcode = dns.rcode.SERVFAIL
    assert look_again(days=60).verified_at is not None


@pytest.mark.django_db(transaction=True)
def test_only_one_of_two_parallel_organizations_proves_a_domain(
    names: NameServer, alice: User, charlie: User
) -> None:
    callers = [signed_in(user) for user in (alice, charlie)]
    claims = [claim(caller).body for caller in callers]
    record = claims[0]["record"]["name"]
    names.records[record] = [each["record"]["value"] for each in claims]
    actions = zip(callers, claims, strict=True)
    answers = at_once(
        *(lambda action=action: verify(action[0], action[1]["id"]) for action in actions)
    )
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert Domain.objects.exclude(verified_at=None).count() == 1
