"""``manage.py rotatekeys``: sign tokens with new keys; previous keys verify until a date."""

import os
from argparse import ArgumentParser
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from accounts.audit_tags import AccountTag
from accounts.tokens import signing
from audit import trail
from audit.tags import TrailTag
from common.commands import CommandRefused, CommandResult, OpsCommand
from common.key_fingerprints import fingerprint
from common.settings.runtime_env import is_given, load_runtime_env, save_runtime_env

REPLACEABLE: Final = (*signing.ROTATED_SETTINGS, "ZMFA_SECRET")


class Command(OpsCommand):
    """Add a new current key to each key ring."""

    help = (
        "Create new keys for access and refresh tokens. No one is signed out: the previous keys "
        "verify until every token they signed has expired, or until --retire. Keys of `make run` "
        "are changed in runtime.env for the next start."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the date and the output."""
        parser.add_argument(
            "--retire",
            metavar="DATE",
            help="Last day on which the previous keys verify, such as 2026-12-01.",
        )
        parser.add_argument(
            "--print",
            "--dry-run",
            action="store_true",
            dest="shows",
            help="Print the new settings and change nothing: for keys that the environment gives.",
        )

        parser.add_argument(
            "--replaced",
            choices=REPLACEABLE,
            help="Create nothing: accept this setting's new key although the former one is lost. "
            "Of ZMFA_SECRET this ends backup codes, trusted devices and recoveries, of the others "
            "all sessions.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Create the keys, and store or print them."""
        if options["replaced"]:
            return _replaced(options["replaced"])
        now = datetime.now(UTC)
        longest = timedelta(
            seconds=max(settings.ACCOUNTS.refresh_ttl_s, settings.ACCOUNTS.access_ttl_s)
        )
        last_day = _day(options["retire"]) if options["retire"] else (now + longest).date()
        retires = last_day + timedelta(days=1)
        if retires <= now.date():
            raise CommandRefused(
                "date_past", "That day is over: all users would be signed out immediately."
            )
        if options["shows"]:
            made = signing.rotate_keys(_present(), retires=retires, today=now.date())
            text = "\n".join(f"{name}={value}" for name, value in made.items())
            return CommandResult({"settings": made, "retires": retires.isoformat()}, text)
        given = [name for name in signing.ROTATED_SETTINGS if is_given(name, os.environ)]
        if given:
            message = f"{' and '.join(given)} come from the environment: use --print and set them."
            raise CommandRefused("keys_given", message)
        values = load_runtime_env(settings.DATA_DIR)
        if not all(name in values for name in signing.ROTATED_SETTINGS):
            raise CommandRefused("keys_missing", f"There is no runtime.env in {settings.DATA_DIR}.")
        with transaction.atomic():
            trail.add(None, AccountTag.CLI_KEY_ROTATE, data={"retires": retires.isoformat()})
            made = signing.rotate_keys(values, retires=retires, today=now.date())
            save_runtime_env(settings.DATA_DIR, values | made)
        text = f"New keys from the next start on; the previous ones verify before {retires}."
        return CommandResult(
            {"retires": retires.isoformat(), "rotated": list(signing.ROTATED_SETTINGS)}, text
        )


def _replaced(name: str) -> CommandResult:
    """Record the present key as the one that the database is used with from now on."""
    accounts = settings.ACCOUNTS
    rings = (accounts.access_keys, accounts.refresh_keys, accounts.mfa_keys)
    key = dict(zip(REPLACEABLE, rings, strict=True))[name][0]
    with transaction.atomic():
        trail.add(None, AccountTag.CLI_KEY_ROTATE, data={"replaced": name})
        seen = {"setting": name, "fingerprint": fingerprint(key)}
        trail.add(None, TrailTag.SYSTEM_KEY_SEE, data=seen)
    return CommandResult({"replaced": name}, f"Processes start with the present {name} now.")


def _day(text: str) -> Any:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
        # The day after it must be a date, too.
        _ = day + timedelta(days=1)
    except (ValueError, OverflowError):
        raise CommandRefused(
            "date_invalid", f"{text!r} is not a date, such as 2026-12-01."
        ) from None
    return day


def _present() -> dict[str, str]:
    """Return the current keys, and the previous ones with their dates."""
    rings = (settings.ACCOUNTS.access_keys, settings.ACCOUNTS.refresh_keys)
    present: dict[str, str] = {}
    for name, ring in zip(signing.ROTATED_SETTINGS, rings, strict=True):
        dated = [
            f"{key}@{settings.ACCOUNTS.key_retirements[key].isoformat()}"
            if key in settings.ACCOUNTS.key_retirements
            else key
            for key in ring[1:]
        ]
        present[name] = ",".join([ring[0], *dated])
    return present
