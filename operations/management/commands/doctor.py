"""``manage.py doctor``: report problems of the installation, and what to do."""

from collections import Counter
from typing import Any, Final

from common.commands import CommandRefused, CommandResult, OpsCommand
from common.version import VERSION
from operations.doctor import backups, cache, databases, host, keys, outbox, programs
from operations.doctor.findings import Check, Finding, Level, run

ALONE: Final[dict[str, Check]] = {
    "settings": host.check_settings,
    "disk": host.check_disk,
    "mail": outbox.check_mail,
    "sms": outbox.check_sms,
    "passkeys": host.check_passkeys,
    "tls": host.check_certificate,
    "proxy": host.check_proxy,
    "cache": cache.check_cache,
}
OF_DATABASE: Final[dict[str, Check]] = {
    "database": databases.check_server,
    "migrations": databases.check_migrations,
}
# These checks read tables.
OF_TABLES: Final[dict[str, Check]] = {
    "queue": databases.check_queue,
    "deliveries": outbox.check_deliveries,
    "webhooks": outbox.check_webhooks,
    "keys": keys.check_keys,
    "backups": backups.check_backups,
    "clusters": databases.check_clusters,
    "programs": programs.check_programs,
}


class Command(OpsCommand):
    """Check everything that the platform needs."""

    # The results of Django's checks are part of the report.
    requires_system_checks = ()
    help = (
        "Check databases, migrations, the task queue, the cache, keys, backups, clock, disk, mail, "
        "text messages, webhooks, passkeys, TLS, the proxy and settings. It only reads, and sends "
        "nothing. Each line says what to do. Exit status 1 if a check failed; warnings do not "
        "count."
    )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Run all checks, and print their findings."""
        found = _findings()
        counts = Counter(one.level for one in found)
        facts = {
            "version": VERSION,
            "findings": [one.as_json() for one in found],
            "failed": counts[Level.FAILED],
        }
        last = f"{counts[Level.FAILED]} failed, {counts[Level.WARNING]} warnings."
        text = "\n".join([f"Zonal {VERSION}", *map(_line, found), last])
        if not counts[Level.FAILED]:
            return CommandResult(facts, text)
        if not options["json"]:
            self.stdout.write(text)
        names = sorted({one.subject for one in found if one.level is Level.FAILED})
        raise CommandRefused("unhealthy", f"Failed: {', '.join(names)}.", **facts)


def _findings() -> list[Finding]:
    found = [one for name, check in ALONE.items() for one in run(name, check)]
    said = databases.unreachable()
    if said:
        advice = "Start it, or check DATABASE_URL."
        message = f"It cannot be used: {said}"
        found.insert(0, Finding("database", Level.FAILED, message, advice))
        why = "Not checked: the database does not answer."
        names = [*list(OF_DATABASE)[1:], *OF_TABLES]
        return [*found, *(Finding(name, Level.SKIPPED, why) for name in names)]
    found += [one for name, check in OF_DATABASE.items() for one in run(name, check)]
    if any(one.subject == "migrations" and one.level == Level.FAILED for one in found):
        why = "Not checked: migrations come first."
        return [*found, *(Finding(name, Level.SKIPPED, why) for name in OF_TABLES)]
    return [*found, *(one for name, check in OF_TABLES.items() for one in run(name, check))]


def _line(finding: Finding) -> str:
    line = f"{finding.level.upper():<8} {finding.subject}: {finding.message}"
    has_advice = finding.advice and finding.level is not Level.OK
    return f"{line}\n         {finding.advice}" if has_advice else line
