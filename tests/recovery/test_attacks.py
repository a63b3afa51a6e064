"""What an attacker tries: replays, mixed-up tokens, an account prepared before its owner came."""

import logging
import re
from datetime import timedelta
from typing import Any

import jwt
import pytest
import time_machine
from django.conf import settings as django_settings
from django.core.management import call_command
from django.utils import timezone

from accounts import passwords
from accounts.models import User
from audit.models import AuditEvent
from outbox.models import Delivery
from recovery import tasks
from recovery.models import Recovery, SecurityAnswer
from tests.cast import PASSWORD, Answer, Caller, signed_in
from tests.recovery.support import (
    NEW_PASSWORD,
    PHONE,
    PREFIX,
    challenge,
    complete,
    initiate,
    log_in,
    mailed_token,
    proven,
    sent,
    texted_token,
    verify,
    with_factor,
)
from tests.rules.routes import api_routes
from tests.twofactor.holder import Holder

pytestmark = pytest.mark.django_db


def test_the_token_of_one_recovery_does_not_fit_another(alice: User, bob: User) -> None:
    hers, token = initiate(alice), mailed_token(to=alice.email)
    again = initiate(alice)
    his = initiate(bob)
    assert verify(again, token).code == "recovery_token_rejected"
    assert verify(his, token).code == "recovery_token_rejected"
    assert verify(hers, token).status == 200


def test_a_texted_token_is_not_accepted_for_a_recovery_by_mail(alice: User, sms: None) -> None:
    with_factor(alice, "sms", PHONE)
    with_factor(alice, "totp", "JBSWY3DPEHPK3PXP")
    initiate(alice, method="sms")
    by_mail = initiate(alice)
    assert verify(by_mail, texted_token()).code == "recovery_token_rejected"
    by_text = initiate(alice, method="sms")
    assert verify(by_text, mailed_token()).code == "recovery_token_rejected"


def test_a_change_of_password_ends_a_recovery(alice: User) -> None:
    started, token = initiate(alice), mailed_token()
    verified = proven(alice)
    alice.password = passwords.hash_password("changed by herself")
    alice.save(update_fields=["password"])
    assert verify(started, token).code == "recovery_gone"
    assert complete(verified).code == "recovery_gone"
    assert challenge(verified).code == "recovery_gone"


def test_a_completed_recovery_ends_the_others_of_the_user(alice: User) -> None:
    started, token = initiate(alice), mailed_token()
    other = proven(alice)
    assert complete(proven(alice)).status == 204
    assert verify(started, token).code == "recovery_gone"
    assert complete(other).code == "recovery_gone"


def test_a_change_of_address_ends_a_recovery(alice: User) -> None:
    verified = proven(alice)
    User.objects.filter(pk=alice.pk).update(email="alice@new.example")
    assert complete(verified).code == "recovery_gone"


def test_a_disabled_user_cannot_recover(alice: User) -> None:
    started, token = initiate(alice), mailed_token()
    verified = proven(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert verify(started, token).code == "recovery_gone"
    assert complete(verified).code == "recovery_gone"
    before = Delivery.objects.count()
    assert initiate(alice).status == 202
    assert Delivery.objects.count() == before


def forged(verified: Answer, *, key: str = "", typ: str = "pwr+jwt", **claims: Any) -> str:
    """Return a reset token with something changed."""
    token = verified.body["reset_token"]
    payload = jwt.decode(token, options={"verify_signature": False}) | claims
    secret = key or django_settings.ACCOUNTS.mfa_keys[0]
    headers = jwt.get_unverified_header(token) | {"typ": typ}
    return jwt.encode(payload, secret, algorithm="HS256", headers=headers)


def test_a_forged_or_malformed_reset_token_is_refused(alice: User, bob: User) -> None:
    verified = proven(alice)
    caller = signed_in(alice)
    tokens = [
        "garbage",
        "ü",
        caller.access_token,
        caller.refresh_token,
        forged(verified, key=django_settings.ACCOUNTS.access_keys[0]),
        forged(verified, typ="mfa+jwt"),
        forged(verified, typ="JWT"),
        forged(verified, aud="zonal:mfa"),
        forged(verified, iss="somebody"),
        forged(verified, sub=str(bob.pk)),
        forged(verified, jti="1"),
        forged(verified, gen=2),
        jwt.encode({"jti": "1"}, "", algorithm="none", headers={"typ": "pwr+jwt"}),
    ]
    for token in tokens:
        body = {"reset_token": token, "password": NEW_PASSWORD}
        answer = Caller().post(f"{PREFIX}/complete", body)
        assert (answer.status, answer.code) == (410, "recovery_gone"), token
    assert complete(verified).status == 204


def test_a_reset_token_is_accepted_for_the_reset_only(alice: User) -> None:
    caller = Caller(proven(alice).body["reset_token"])
    for route in api_routes():
        path = route.filled(dict.fromkeys(route.placeholders, "x"))
        for method in route.methods:
            if route.access_of(method).kind == "public":
                continue
            answer = caller.call(method, path, {})
            assert (answer.status, answer.code) == (401, "token_invalid"), path
    refreshed = Caller().post("/v1/auth/refresh", {"refresh_token": caller.access_token})
    assert refreshed.code == "token_invalid"


def test_classic_pre_hijacking_and_the_unexpired_session_end_at_recovery(alice: User) -> None:
    """An attacker signed up with Alice's address first, and has password, session and answers."""
    User.objects.filter(pk=alice.pk).update(email_verified_at=None)
    stranger = signed_in(alice)
    SecurityAnswer(
        organization_id=alice.organization_id,
        user=alice,
        question="dream_job",
        encoded="-",
        created_at=timezone.now(),
    ).save()
    assert complete(proven(alice)).status == 204
    assert log_in(alice, PASSWORD).code == "invalid_credentials"
    assert stranger.get("/v1/whoami").code == "email_required"
    owner = User.objects.get(email=alice.email)
    assert owner.pk != alice.pk
    assert not SecurityAnswer.objects.filter(user=owner).exists()


def test_an_attackers_factor_is_not_taken_for_the_owners(holder: Holder) -> None:
    """A factor is never skipped, also where the address was never proven."""
    User.objects.filter(pk=holder.user.pk).update(email_verified_at=None)
    assert complete(proven(holder.user)).code == "recovery_challenge_required"


def test_a_recovery_is_not_bound_to_a_header(alice: User, charlie: User) -> None:
    """A session of another user changes nothing: the reset token alone says whose it is."""
    verified = proven(alice)
    body = {"reset_token": verified.body["reset_token"], "password": NEW_PASSWORD}
    assert signed_in(charlie).post(f"{PREFIX}/complete", body).status == 204
    assert User.objects.get(pk=charlie.pk).password == "!"


def test_no_secret_is_in_a_log_line_a_row_or_a_later_answer(
    holder: Holder, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    started = initiate(holder.user)
    token = mailed_token()
    verified = verify(started, token)
    begun = challenge(verified)
    code = holder.code()
    answer = complete(verified, challenge_id=begun.body["challenge_id"], code=code)
    assert answer.status == 204
    secrets = [
        token,
        verified.body["reset_token"],
        begun.body["challenge_id"],
        NEW_PASSWORD,
        started.body["recovery_id"],
    ]
    captured = capsys.readouterr()
    places = [caplog.text, captured.out, captured.err]
    places += [str(row) for row in Recovery.objects.values()]
    places += [str(row) for row in AuditEvent.objects.values()]
    places += [str(row) for row in Delivery.objects.values()]
    places += [str(verified.body).replace(verified.body["reset_token"], "")]
    for secret in secrets:
        assert not any(secret in place for place in places)


def test_the_mail_contains_the_token_and_its_link(alice: User, mailoutbox: list[Any]) -> None:
    from outbox.tasks import deliver

    initiate(alice)
    token = mailed_token()
    for delivery in Delivery.objects.all():
        deliver(str(delivery.pk))
    assert len(mailoutbox) == 1
    mail = mailoutbox[0]
    assert f"\n{token}\n" in mail.body
    for form in (mail.body, mail.alternatives[0][0]):
        # Nothing that a browser would send to a server comes before the code.
        links = re.findall(r"https?://[^\s\"<]+", form)
        assert links
        assert not any(token in link.partition("#")[0] for link in links)
        assert "number:" not in form
    assert token not in mail.subject
    # Once it is out, nothing of it stays.
    assert not Delivery.objects.exclude(payload="").exists()


def test_a_mailed_token_expires_with_its_recovery(alice: User) -> None:
    initiate(alice)
    recovery, delivery = Recovery.objects.get(), Delivery.objects.get()
    assert delivery.expires_at == recovery.expires_at


def test_accounts_with_one_number_share_its_daily_limit(
    alice: User, bob: User, sms: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recovery.channels.STARTS_PER_ACCOUNT", 1)
    monkeypatch.setattr("recovery.channels.STARTS_FROM_KNOWN_DEVICES", 0)
    for user in (alice, bob):
        with_factor(user, "sms", PHONE)
        assert initiate(user, method="sms").status == 202
    assert len(sent()) == 1


def test_housekeeping_deletes_expired_recoveries(alice: User) -> None:
    initiate(alice)
    initiate(email="nobody@example.com")
    tasks.forget_expired(timestamp=0)
    assert Recovery.objects.count() == 2
    for days, left in ((1, 1), (9, 0)):
        moment = timezone.now() + timedelta(days=days)
        with time_machine.travel(moment):
            tasks.forget_expired(timestamp=0)
        assert Recovery.objects.count() == left


def test_there_is_no_missing_migration(db: None) -> None:
    call_command("makemigrations", "recovery", check=True, dry_run=True, verbosity=0)
