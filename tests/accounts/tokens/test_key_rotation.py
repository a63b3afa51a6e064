"""New keys sign, former ones verify until their retirement, and every session continues."""

import io
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accounts import conf
from accounts.models import User
from audit.models import AuditEvent
from common.settings.env import Env, SettingError
from common.settings.runtime_env import load_runtime_env, save_runtime_env
from environments.models import Organization
from tests.cast import Caller, member, signed_in
from tests.commands import facts, refused, run
from tests.twofactor.holder import ask, with_totp

pytestmark = pytest.mark.django_db


def today() -> date:
    return datetime.now(UTC).date()


@pytest.fixture
def folder(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data folder with the keys in use, which no environment variable gives."""
    for name in ("ZJWT_SECRET", "ZJWT_REFRESH_SECRET"):
        monkeypatch.delenv(name, raising=False)
    settings.DATA_DIR = tmp_path
    values = {
        "ZJWT_SECRET": settings.ACCOUNTS.access_keys[0],
        "ZJWT_REFRESH_SECRET": settings.ACCOUNTS.refresh_keys[0],
        "ZMFA_SECRET": "m" * 48,
        "SECRET_KEY": "s" * 48,
    }
    save_runtime_env(tmp_path, values)
    return tmp_path


def restarted(settings: Settings, folder: Path) -> None:
    """Read the keys again, like a start does."""
    values = load_runtime_env(folder)
    keys = conf.keys(Env({}, values), values["SECRET_KEY"])
    settings.ACCOUNTS = replace(
        settings.ACCOUNTS,
        access_keys=keys.access,
        refresh_keys=keys.refresh,
        key_retirements=keys.retirements,
    )


def test_rotation_signs_no_user_out_and_new_tokens_have_the_new_key(
    alice: User, folder: Path, settings: Settings
) -> None:
    caller = signed_in(alice)
    former = settings.ACCOUNTS.access_keys[0]
    said = facts("rotatekeys")
    assert former not in str(said)
    restarted(settings, folder)
    assert settings.ACCOUNTS.access_keys[0] != former
    assert caller.get("/v1/whoami").status == 200
    refreshed = Caller().holding(caller.refresh())
    settings.ACCOUNTS = replace(
        settings.ACCOUNTS,
        access_keys=settings.ACCOUNTS.access_keys[:1],
        refresh_keys=settings.ACCOUNTS.refresh_keys[:1],
    )
    assert refreshed.get("/v1/whoami").status == 200
    assert AuditEvent.objects.filter(tag="cli:key:rotate").exists()


def test_a_former_key_is_refused_from_its_retirement_day_on(
    alice: User, folder: Path, settings: Settings
) -> None:
    caller = signed_in(alice)
    run("rotatekeys", "--retire", today().isoformat())
    restarted(settings, folder)
    assert caller.get("/v1/whoami").status == 200
    settings.ACCOUNTS = replace(
        settings.ACCOUNTS, key_retirements=dict.fromkeys(settings.ACCOUNTS.key_retirements, today())
    )
    fresh = signed_in(alice)
    # Also the access token that this process has verified before.
    assert (caller.get("/v1/whoami").status, caller.refresh().status) == (401, 401)
    assert fresh.get("/v1/whoami").status == 200


def test_a_second_rotation_keeps_the_keys_that_still_verify(
    folder: Path, settings: Settings
) -> None:
    first = settings.ACCOUNTS.access_keys[0]
    run("rotatekeys")
    run("rotatekeys")
    restarted(settings, folder)
    assert len(settings.ACCOUNTS.access_keys) == 3
    assert settings.ACCOUNTS.access_keys[2] == first
    values = load_runtime_env(folder)
    over = ",".join(
        entry.partition("@")[0] + "@2020-01-01" if "@" in entry else entry
        for entry in values["ZJWT_SECRET"].split(",")
    )
    save_runtime_env(folder, values | {"ZJWT_SECRET": over})
    run("rotatekeys")
    restarted(settings, folder)
    assert len(settings.ACCOUNTS.access_keys) == 2


def test_keys_of_the_environment_are_printed_and_left_alone(
    folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZJWT_SECRET", settings.ACCOUNTS.access_keys[0])
    before = load_runtime_env(folder)
    assert refused("rotatekeys")[1]["code"] == "keys_given"
    made = facts("rotatekeys", "--print")["settings"]
    assert made["ZJWT_SECRET"].split(",")[1].startswith(settings.ACCOUNTS.access_keys[0] + "@")
    assert load_runtime_env(folder) == before


@pytest.mark.parametrize(("day", "code"), [("soon", "date_invalid"), ("2020-01-01", "date_past")])
def test_a_day_that_is_none_or_over_is_refused(folder: Path, day: str, code: str) -> None:
    before = load_runtime_env(folder)
    assert refused("rotatekeys", "--retire", day)[1]["code"] == code
    assert load_runtime_env(folder) == before


def test_a_wrong_date_in_a_setting_is_refused_at_the_start() -> None:
    wrong = {"ZJWT_SECRET": "n" * 48 + "," + "k" * 48 + "@tomorrow"}
    with pytest.raises(SettingError, match="ZJWT_SECRET"):
        conf.keys(Env(wrong, {}), "s" * 48)


def test_an_issued_token_is_a_session_like_any_other(alice: User) -> None:
    said = facts("issuetoken", "alice@example.com", "--environment", "sandbox")
    who = Caller(said["access_token"]).get("/v1/whoami").body
    assert (who["amr"], who["aal"], who["environment"]["id"]) == (["cli"], 1, "sandbox")
    shown = run("issuetoken", "alice@example.com").strip()
    assert Caller(shown).get("/v1/whoami").status == 200
    assert AuditEvent.objects.filter(tag="api:session:create", actor_id=alice.pk).count() == 2


def test_a_due_second_factor_is_shown_by_the_exit_status(
    home: Organization, settings: Settings
) -> None:
    with_totp(member(home, "dora@example.com"))
    out = io.StringIO()
    with pytest.raises(CommandError, match="second factor is due") as caught:
        call_command("issuetoken", "dora@example.com", stdout=out)
    assert caught.value.returncode == 4
    status, _, token = out.getvalue().strip().partition(": ")
    assert status == "mfa_required"
    assert ask(Caller(token)).status == 200
    assert Caller(token).get("/v1/whoami").status == 401


def test_an_unknown_or_disabled_user_gets_no_token(alice: User) -> None:
    assert refused("issuetoken", "nobody@example.com")[1]["code"] == "user_not_found"
    assert (
        refused("issuetoken", "alice@example.com", "--environment", "x")[1]["code"]
        == "environment_not_found"
    )
    User.objects.update(is_active=False)
    assert refused("issuetoken", "alice@example.com")[1]["code"] == "user_disabled"
