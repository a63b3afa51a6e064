"""``manage.py backup``: make, list, verify and delete backups."""

from argparse import ArgumentParser
from typing import Any

from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from environments import environments
from operations.audit_tags import OperationTag
from operations.backup import catalogue, making
from operations.backup.archive import BackupArchive, open_archive
from operations.backup.making import BackupResult
from operations.backup.work import exclusive


class Command(OpsCommand):
    """Make, list, verify and delete backups."""

    help = (
        "Write a backup to ZBACKUP_URL, encrypted to ZBACKUP_RECIPIENTS. An interrupted backup is "
        "continued by the same command within a day. The root keys are in no backup: store them "
        "elsewhere (docs/backup.md)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument(
            "--environment",
            metavar="ORG:ENV",
            help="Only this environment's database, as 5:live.",
        )
        choice.add_argument("--list", action="store_true", help="List the backups, newest first.")
        choice.add_argument(
            "--verify",
            metavar="ID",
            nargs="?",
            const="latest",
            help="Read a backup and authenticate all of it, by default the newest.",
        )
        choice.add_argument(
            "--prune",
            metavar="N",
            type=int,
            help="Delete all but the N newest backups.",
        )
        choice.add_argument(
            "--drilled",
            metavar="ID",
            help="Record that this backup was restored elsewhere and compared.",
        )
        parser.add_argument(
            "--one-in",
            metavar="N",
            type=int,
            help="With --verify: read one in N objects' bytes, others each day.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="With --prune: show what would be deleted."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Make a backup, or do what an option requests."""
        if options["dry_run"] and options["prune"] is None:
            raise CommandRefused("dry_run_misplaced", "--dry-run goes with --prune.")
        if options["one_in"] is not None and (not options["verify"] or options["one_in"] < 1):
            raise CommandRefused("one_in_invalid", "--one-in N goes with --verify, N >= 1.")
        with open_archive() as archive:
            if options["list"]:
                return _list(archive)
            if options["verify"]:
                one_in = options["one_in"] or 1
                return _verify(archive, options["verify"], self.stderr.write, one_in=one_in)
            if options["drilled"]:
                return _drilled(archive, options["drilled"])
            if options["prune"] is not None:
                return _prune(archive, options["prune"], is_dry=options["dry_run"])
            only = _environment(options["environment"]) if options["environment"] else None
            with exclusive(making.kind_of(only)) as work:
                made = making.make(archive, work, self.stderr.write, only=only)
        facts = {
            **made.manifest.facts(),
            "uploaded_objects": made.uploaded_objects,
            "missing_objects": made.missing_objects,
            "not_dumped": made.failed,
            "not_restorable": made.not_restorable,
            "left_out": made.left_out,
            "without_data": made.without_data,
        }
        trail.add(None, OperationTag.CLI_BACKUP_CREATE, data=made.manifest.facts())
        return CommandResult(facts, _text(made), _unfinished(made))


def _list(archive: BackupArchive) -> CommandResult:
    rows = [
        {"id": each.id, "state": each.state, **(each.manifest.facts() if each.manifest else {})}
        for each in catalogue.find_all(archive)
    ]
    lines = [
        f"{row['id']}  {row['state']:<10}"
        + (
            f"  {row['kind']}, {row['environments']} environments, {row['objects']} objects"
            if "kind" in row
            else ""
        )
        for row in rows
    ]
    return CommandResult({"backups": rows}, "\n".join(lines) or "There is no backup.")


def _verify(archive: BackupArchive, backup_id: str, say: Any, *, one_in: int) -> CommandResult:
    found = catalogue.find(archive, backup_id)
    wrong = catalogue.verify(archive, found, say, one_in=one_in)
    if wrong:
        sentence = f"{len(wrong)} files are missing or altered, the first is {wrong[0]}."
        raise CommandRefused("backup_altered", sentence, files=wrong)
    text = f"{found.id} is whole and unaltered"
    text += f"; of the objects' bytes one in {one_in} was read." if one_in > 1 else "."
    return CommandResult({**found.facts(), "verified": True, "one_in": one_in}, text)


def _drilled(archive: BackupArchive, backup_id: str) -> CommandResult:
    found = catalogue.find(archive, backup_id)
    if found.kind != making.PLATFORM:
        raise CommandRefused("backup_of_environment", "A drill restores a backup of everything.")
    trail.add(None, OperationTag.CLI_BACKUP_DRILL, data=found.facts())
    return CommandResult(
        {**found.facts(), "drilled": True}, f"A drill with {found.id} is recorded."
    )


def _prune(archive: BackupArchive, keep: int, *, is_dry: bool) -> CommandResult:
    if keep < 1:
        raise CommandRefused("keep_invalid", "At least one backup must be kept.")
    with exclusive(making.PLATFORM) as work:
        plan = work.plan()
        protected = plan.id if plan else ""
        gone, objects = catalogue.prune(archive, keep=keep, protected=protected, is_dry=is_dry)
    facts = {"deleted": gone, "deleted_objects": objects, "dry_run": is_dry}
    if (gone or objects) and not is_dry:
        trail.add(None, OperationTag.CLI_BACKUP_DELETE, data={"deleted": gone, "objects": objects})
    done = "Would delete" if is_dry else "Deleted"
    return CommandResult(facts, f"{done} {len(gone)} backups and the bytes of {objects} objects.")


def _environment(text: str) -> int:
    organization, _, name = text.partition(":")
    if not organization.isdecimal() or not name:
        raise CommandRefused("environment_invalid", "Name it as 5:live, by its organization's id.")
    return environments.find(int(organization), name).pk


def _text(made: BackupResult) -> str:
    found = made.manifest
    first = (
        f"{found.id}: {found.environments} environments, {found.objects} objects "
        f"({made.uploaded_objects} new)."
    )
    return "\n".join(
        [first, *map(_without_data, made.without_data), *map(_left_out, made.left_out)]
    )


def _without_data(each: dict[str, Any]) -> str:
    named = f"{each['org_id']}:{each['environment']}"
    return f"Environment {named} is a copy that was not finished, and has no data."


def _left_out(each: dict[str, Any]) -> str:
    named = f"{each['org_id']}:{each['environment']}"
    return f"A restore of environment {named} will leave out {', '.join(each['objects'])}."


def _unfinished(made: BackupResult) -> str:
    parts = [
        f"Environment {each['org_id']}:{each['environment']} is not in it: {each['reason']}"
        for each in made.failed
    ]
    parts += [
        f"Environment {each['org_id']}:{each['environment']} is in it, but cannot be restored: "
        f"{each['reason']}."
        for each in made.not_restorable
    ]
    if made.missing_objects:
        parts.append(f"The bytes of {made.missing_objects} objects are missing or damaged.")
    return "\n".join(parts)
