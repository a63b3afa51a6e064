"""Each check of a registration (WebAuthn L3 §7.1), against an authenticator that lies."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from accounts.models import User
from tests.cast import Answer, signed_in
from tests.twofactor.webauthn.authenticator import Authenticator, Lies
from tests.twofactor.webauthn.holder import finish, register, start
from twofactor.models import Factor, Passkey

pytestmark = pytest.mark.django_db


def assert_refused(answer: Answer) -> None:
    assert (answer.status, answer.code) == (400, "invalid_request"), answer.body
    assert [(row["field"], row["code"]) for row in answer.body["errors"]] == [
        ("credential", "refused")
    ]
    assert not Passkey.objects.exists()
    assert not Factor.objects.exists()


def assert_malformed(answer: Answer) -> None:
    assert (answer.status, answer.code) == (400, "malformed_credential"), answer.body
    assert not Passkey.objects.exists()


def test_a_wrong_rp_is_refused(alice: User) -> None:
    for rp_id in ("evil.example", "example.com"):
        assert_refused(register(signed_in(alice), Authenticator(), Lies(rp_id=rp_id)))


def test_a_wrong_origin_is_refused(alice: User) -> None:
    for origin in ("https://evil.example", "http://app.example.com", "https://example.com"):
        assert_refused(register(signed_in(alice), Authenticator(), Lies(origin=origin)))


def test_a_framed_page_is_refused(alice: User) -> None:
    caller = signed_in(alice)
    assert_refused(register(caller, Authenticator(), Lies(cross_origin=True)))
    assert_refused(register(caller, Authenticator(), Lies(top_origin="https://evil.example")))


def test_a_wrong_challenge_is_refused(alice: User) -> None:
    for challenge in (os.urandom(32), b""):
        assert_refused(register(signed_in(alice), Authenticator(), Lies(challenge=challenge)))


def test_another_sessions_challenge_is_refused(alice: User) -> None:
    caller = signed_in(alice)
    first, second = start(caller), start(caller)
    assert_refused(finish(caller, second, Authenticator().create(first.body["creation_options"])))


def test_an_assertion_is_not_a_registration(alice: User) -> None:
    assert_refused(register(signed_in(alice), Authenticator(), Lies(type="webauthn.get")))
    assert_refused(register(signed_in(alice), Authenticator(), Lies(type="payment.create")))


def test_without_the_users_presence_it_is_refused(alice: User) -> None:
    assert_refused(register(signed_in(alice), Authenticator(), Lies(user_present=False)))


def test_an_id_that_was_not_attested_is_refused(alice: User) -> None:
    lies = Lies(attested_id=os.urandom(32))
    assert_refused(register(signed_in(alice), Authenticator(), lies))


def test_backed_up_without_being_eligible_is_refused(alice: User) -> None:
    lies = Lies(backup_eligible=False, backed_up=True)
    assert_refused(register(signed_in(alice), Authenticator(), lies))


def test_an_algorithm_that_was_not_offered_is_refused(alice: User) -> None:
    for algorithm in (-36, -65535, 0, -7.5, "ES256"):
        assert_refused(register(signed_in(alice), Authenticator(), Lies(key={3: algorithm})))


def test_a_key_that_does_not_fit_its_algorithm_is_refused(alice: User) -> None:
    large = ec.generate_private_key(ec.SECP384R1()).public_key().public_numbers()
    small = rsa.generate_private_key(65537, 1024)  # noqa: S505 - too short on purpose
    modulus = small.public_key().public_numbers().n.to_bytes(128, "big")
    for key in (
        {-1: 2, -2: large.x.to_bytes(48, "big"), -3: large.y.to_bytes(48, "big")},
        {1: 3, 3: -257, -1: modulus, -2: b"\x01\x00\x01"},
        {1: 3, 3: -7, -1: modulus, -2: b"\x01\x00\x01"},
        {-2: bytes(32)},  # no point of the curve
        {-1: 99},
        {1: 99},
    ):
        assert_refused(register(signed_in(alice), Authenticator(), Lies(key=key)))


def test_an_rsa_key_of_2048_bits_is_good(alice: User) -> None:
    numbers = rsa.generate_private_key(65537, 2048).public_key().public_numbers()
    key = {1: 3, 3: -257, -1: numbers.n.to_bytes(256, "big"), -2: b"\x01\x00\x01"}
    assert register(signed_in(alice), Authenticator(), Lies(key=key)).status == 200


def test_packed_self_attestation_is_verified(alice: User) -> None:
    caller = signed_in(alice)
    assert_refused(register(caller, Authenticator(format="packed"), Lies(signature=b"wrong")))
    assert register(caller, Authenticator(format="packed")).status == 200


def test_formats_that_were_not_asked_for_are_refused(alice: User) -> None:
    for kind in ("fido-u2f", "tpm", "android-key", "android-safetynet", "apple", "x"):
        answer = register(signed_in(alice), Authenticator(), Lies(format=kind))
        assert_refused(answer)
        # Before any parser of that format has seen it.
        assert "not asked for" in answer.body["errors"][0]["message"]


def test_a_none_attestation_with_a_statement_is_refused(alice: User) -> None:
    lies = Lies(format="none", statement={"sig": b"x"})
    assert_refused(register(signed_in(alice), Authenticator(), lies))


def test_an_id_of_1023_bytes_is_good_and_one_more_is_malformed(alice: User) -> None:
    caller = signed_in(alice)
    assert_malformed(register(caller, Authenticator(raw_id=os.urandom(1024))))
    assert register(caller, Authenticator(raw_id=os.urandom(1023))).status == 200


def test_id_and_raw_id_must_be_the_same(alice: User) -> None:
    caller = signed_in(alice)
    begun = start(caller)
    credential = Authenticator().create(begun.body["creation_options"])
    assert_malformed(finish(caller, begun, credential | {"id": "AAAA"}))
    assert_malformed(finish(caller, begun, credential | {"id": "", "rawId": ""}))
    assert_malformed(finish(caller, begun, credential | {"type": "password"}))
    # Malformed ones are not counted: the session goes on.
    assert finish(caller, begun, credential).status == 200


def test_a_refusal_names_the_check_that_failed(alice: User) -> None:
    answer = register(signed_in(alice), Authenticator(), Lies(origin="https://evil.example"))
    assert "origin" in answer.body["errors"][0]["message"]
    assert "evil" not in answer.raw.content.decode()
