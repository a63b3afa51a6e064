"""``manage.py restore``: restore a backup into an empty platform, or one environment's database."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.db import connections

from common.commands import CommandRefused, CommandResult, OpsCommand, Unreachable
from environments import environments
from operations.backup import catalogue, control, restore_checks, restoring
from operations.backup.archive import BackupArchive, open_archive
from operations.backup.restoring import PlatformRestoreResult
from operations.backup.sealing import Identity, read_identities
from operations.backup.work import exclusive
from operations.doctor import keys
from sqlgateway.databases.copies import restores
from sqlgateway.errors import EngineUnavailable
from sqlgateway.management.arguments import database_of


class Command(OpsCommand):
    """Restore a backup."""

    # The tables do not exist yet.
    requires_system_checks = ()
    help = (
        "Restore a backup into an empty platform whose processes do not run. All of it is read and "
        "authenticated before anything is written. An interrupted restore is continued by the same "
        "command. Afterwards sessions, keys and queued messages are invalid, and payouts wait: see "
        "docs/backup.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the backup and the private key."""
        parser.add_argument(
            "backup", nargs="?", default="latest", help="Id of the backup; by default the newest."
        )
        parser.add_argument("--identity", metavar="FILE", help="The private key of age.")
        parser.add_argument(
            "--check",
            "--dry-run",
            action="store_true",
            dest="check",
            help="Check everything, and write nothing.",
        )
        parser.add_argument(
            "--environment",
            metavar="ORG:ENV",
            help="Only this environment's database, in place of its data in a running platform.",
        )
        parser.add_argument(
            "--after-recovery",
            action="store_true",
            help="Restore nothing: PostgreSQL recovered the control database to a point in time. "
            "Delete the rows that a restore would omit.",
        )
        parser.add_argument(
            "--all-to-admin",
            action="store_true",
            help="With --environment, as of `restoreenvironment`.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Restore the backup."""
        if options["after_recovery"]:
            return _void()
        if not options["identity"]:
            raise CommandRefused("identity_missing", "Name the private key of age by --identity.")
        identities = read_identities(options["identity"])
        try:
            with open_archive() as archive:
                if options["environment"]:
                    return _environment(archive, identities, options)
                return _platform(archive, identities, options, self.stderr.write)
        except EngineUnavailable:
            sentence = "The tenants' cluster does not answer: run the same command again."
            raise Unreachable("cluster_unreachable", sentence) from None


def _platform(
    archive: BackupArchive, identities: list[Identity], options: dict[str, Any], say: Any
) -> CommandResult:
    _name_connections()
    with exclusive("restore") as work:
        backup_id = options["backup"]
        checked = restore_checks.check(archive, backup_id, identities, work.folder, say)
        if options["check"]:
            facts = {**checked.manifest.facts(), "checked": True}
            return CommandResult(facts, f"{checked.manifest.id} can be restored here.")
        done = restoring.restore(archive, checked, identities, work.folder, say)
        # Of tokens, whose former keys signed nothing that is still valid.
        keys.record()
        work.end()
    facts = {
        **checked.manifest.facts(),
        "restored_environments": done.environments,
        "not_restored": done.failed,
        "without_data": done.without_data,
        "lost_objects": done.lost_objects,
        "payouts_waiting": done.payouts_waiting,
    }
    return CommandResult(facts, _text(done), _unfinished(done))


def _void() -> CommandResult:
    _name_connections()
    waiting = restoring.delete_restored_credentials()
    text = f"All users have to sign in again; keys must be created again; {waiting} payouts wait."
    return CommandResult({"payouts_waiting": waiting}, text)


def _name_connections() -> None:
    """Name this command's connections, to distinguish them from those of running processes."""
    for alias in settings.DATABASES:
        with connections[alias].cursor() as cursor:
            cursor.execute(
                "SELECT set_config('application_name', %s, false)", [control.APPLICATION_NAME]
            )


def _environment(
    archive: BackupArchive, identities: list[Identity], options: dict[str, Any]
) -> CommandResult:
    organization, _, name = options["environment"].partition(":")
    if not organization.isdecimal() or not name:
        raise CommandRefused("environment_invalid", "Name it as 5:live, by its organization's id.")
    environment = environments.find(int(organization), name)
    found = catalogue.find(archive, options["backup"])
    with exclusive("restore-environment") as work:
        planned = restore_checks.read_contents(archive, found, identities, work.folder)
        named = [each for each in planned if each.environment_pk == environment.pk]
        if not named or named[0].file not in found.files:
            raise CommandRefused(
                "environment_absent", f"{found.id} has no dump of this environment."
            )
        where = {"organization": environment.organization_id, "environment": environment.slug}
        database = database_of(where, is_made=True)
        plain = work.scratch("environment")
        restore_checks.fetch(archive, found, named[0].file, identities, plain)
        if not options["check"]:
            restores.restore(database, plain, all_to_admin=options["all_to_admin"])
        work.end()
    facts = {"id": found.id, "org_id": environment.organization_id, "environment": environment.slug}
    return CommandResult(facts, f"{options['environment']} is as it was in {found.id}.")


def _text(done: PlatformRestoreResult) -> str:
    lines = [
        f"Restored {done.manifest.id}: {done.environments} environments, {done.objects} objects.",
        "All users have to sign in again; API keys and access keys have to be created again.",
    ]
    lines += [
        f"Environment {each['org_id']}:{each['environment']} is shown as failed: it was a copy "
        "that was not finished, and had no data."
        for each in done.without_data
    ]
    if done.payouts_waiting:
        lines.append("Payouts wait: see `manage.py runpayouts --reconcile`.")
    return "\n".join(lines)


def _unfinished(done: PlatformRestoreResult) -> str:
    return "\n".join(
        f"Environment {each['org_id']}:{each['environment']} is not restored: {each['reason']}"
        for each in done.failed
    )
