"""Backup codes: each once, a new set voids the old, none is kept in clear."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import connection
from pytest_django import Settings

from accounts.models import User
from tests import inbox
from tests.twofactor.holder import Holder, as_typed, ask, log_in, pending, reply, with_totp
from twofactor.models import BackupCode

pytestmark = pytest.mark.django_db


def use(code: str) -> int:
    return reply(ask(pending(log_in()), "backup_code"), code).status


def test_backup_codes_are_readable_and_have_80_bits(holder: Holder) -> None:
    for code in holder.backup_codes:
        assert re.fullmatch(r"([0-9A-HJKMNP-TV-Z]{4}-){3}[0-9A-HJKMNP-TV-Z]{4}", code)


def test_each_backup_code_works_once(holder: Holder) -> None:
    assert use(holder.backup_codes[0]) == 200
    assert use(holder.backup_codes[0]) == 401
    assert use(holder.backup_codes[1]) == 200


def test_a_code_is_read_as_people_type_it(holder: Holder) -> None:
    assert use(as_typed(holder.backup_codes[0])) == 200
    assert use(as_typed(holder.backup_codes[0])) == 401


def test_a_new_set_voids_every_earlier_code(holder: Holder) -> None:
    new = holder.caller.post("/v1/auth/2fa/backup-codes").body["backup_codes"]
    assert set(new).isdisjoint(holder.backup_codes)
    assert use(holder.backup_codes[0]) == 401
    assert use(new[0]) == 200
    assert holder.caller.get("/v1/auth/2fa/status").body["backup_codes_remaining"] == 9


def test_the_user_is_notified_of_each_use_and_of_a_new_set(holder: Holder) -> None:
    use(holder.backup_codes[0])
    holder.caller.post("/v1/auth/2fa/backup-codes")
    notices = inbox.notices_to("alice@example.com")
    assert "backup_code_used" in notices
    assert "backup_codes_regenerated" in notices


def test_only_digests_are_kept(holder: Holder) -> None:
    kept = str(list(BackupCode.objects.values()))
    for code in holder.backup_codes:
        assert code not in kept
        assert code.replace("-", "") not in kept


@pytest.mark.django_db(transaction=True)
def test_one_code_used_in_parallel_gives_one_success(alice: User) -> None:
    holder = with_totp(alice)
    challenges = [ask(pending(log_in()), "backup_code") for _ in range(6)]

    def once(index: int) -> int:
        try:
            return reply(challenges[index], holder.backup_codes[0]).status
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(once, range(6)))
    assert statuses == [200, 401, 401, 401, 401, 401]


def test_backup_codes_survive_a_key_rotation(holder: Holder, settings: Settings) -> None:
    old = settings.ACCOUNTS.mfa_keys
    settings.ACCOUNTS = replace(settings.ACCOUNTS, mfa_keys=("n" * 48, *old))
    assert reply(ask(pending(log_in()), "backup_code"), holder.backup_codes[0]).status == 200
    settings.ACCOUNTS = replace(settings.ACCOUNTS, mfa_keys=("n" * 48,))
    answer = reply(ask(pending(log_in()), "backup_code"), holder.backup_codes[1])
    assert answer.code == "invalid_code"


def test_used_up_codes_are_no_longer_offered(holder: Holder) -> None:
    BackupCode.objects.all().delete()
    assert [row["method"] for row in log_in().body["methods"]] == ["totp"]
