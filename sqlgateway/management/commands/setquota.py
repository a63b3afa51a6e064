"""``manage.py setquota``: an organization's own limits."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from environments.models import Organization
from platform_site.lib.commands import OpsCommand, Outcome, Refused
from sqlgateway.models import OrganizationQuota
from sqlgateway.provisioning.quotas import quota_of

DEFAULT = "default"
MOST_STATEMENTS = 10_000


class Command(OpsCommand):
    """Set an organization's limits of disk, environments, statements and their time."""

    help = (
        "Set how much one organization may use, instead of ZSQL_DISK_LIMIT_BYTES, "
        "ZENVIRONMENT_LIMIT, ZSQL_RUNNING_PER_ORGANIZATION and ZSQL_TIMEOUT_MS; without options, "
        "show it. Disk is measured each minute, and web processes read the limits of statements "
        "each half minute, so a change takes effect within one."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the organization and its limits."""
        parser.add_argument("organization", type=int, help="The organization's id.")
        parser.add_argument(
            "--disk-bytes", type=_limit, help="Of each environment's database, or default."
        )
        parser.add_argument(
            "--environments", type=_limit, help="Environments that it may have, or default."
        )

        parser.add_argument(
            "--statements",
            type=_statements,
            help="SQL requests that each web process runs for it at once, or default.",
        )
        parser.add_argument(
            "--timeout-ms",
            type=_timeout,
            help="The time of one statement in milliseconds, also of a stream's, which otherwise "
            "has ZSQL_EXPORT_TIMEOUT_S; imports keep their own. At most ZSQL_TIMEOUT_MS, or "
            "default.",
        )

    def run(self, options: dict[str, Any]) -> Outcome:
        """Set and show them."""
        organization_id = options["organization"]
        if not Organization.objects.filter(pk=organization_id).exists():
            raise Refused("organization_not_found", f"There is no organization {organization_id}.")
        given = {
            name: None if options[name] == DEFAULT else options[name]
            for name in ("disk_bytes", "environments", "statements", "timeout_ms")
            if options[name] is not None
        }
        if given:
            OrganizationQuota.unscoped.update_or_create(  # unscoped: an operator names the tenant
                organization_id=organization_id, defaults=given
            )
        quota = quota_of(organization_id)
        facts = {
            "org_id": organization_id,
            "disk_bytes": quota.disk_bytes,
            "environments": quota.environments,
            "statements": quota.statements,
            "timeout_ms": quota.timeout_ms,
        }
        text = (
            f"Organization {organization_id}: {quota.disk_bytes} bytes for each environment, "
            f"{quota.environments} environments, "
            f"{DEFAULT if quota.statements is None else quota.statements} statements at once, "
            f"of {quota.timeout_ms} ms each."
        )
        return Outcome(facts, text)


def _limit(text: str) -> int | str:
    if text == DEFAULT:
        return text
    number = int(text)
    if not 0 <= number < 2**31 * 2**20:
        raise ValueError(text)
    return number


def _statements(text: str) -> int | str:
    limit = _limit(text)
    if isinstance(limit, int) and limit > MOST_STATEMENTS:
        raise ValueError(text)
    return limit


def _timeout(text: str) -> int | str:
    limit = _limit(text)
    if isinstance(limit, int) and not 1 <= limit <= settings.SQL.timeout_ms:
        raise ValueError(text)
    return limit
