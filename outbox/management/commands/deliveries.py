"""``manage.py deliveries``: show mail and text messages, and retry those that failed."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from outbox.audit_tags import OutboxTag
from outbox.deliveries import NotRetryable
from outbox.messages import queue
from outbox.models import Delivery

COLUMNS: Final = ("id", "kind", "template", "to", "state", "attempts", "error", "next", "created")
MOST_SHOWN: Final = 1_000_000


class Command(OpsCommand):
    """Show deliveries without their content, and retry failed ones."""

    help = (
        "List mail and text messages, newest first, without their content. States: queued (waits "
        "for its next attempt), sending, sent, failed (no attempts left; kept for seven days so "
        "that it can be retried), given_up (refused permanently, expired, or failed too long "
        "ago). --retry and --retry-failed attempt them again now, after the cause is repaired."
    )

    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the filters, and the option to retry."""
        parser.add_argument("--state", choices=Delivery.State.values, help="Only these.")
        parser.add_argument("--kind", choices=Delivery.Kind.values, help="Only these.")
        parser.add_argument(
            "--limit", type=int, default=50, help="Show at most this many (50 by default)."
        )
        retry = parser.add_mutually_exclusive_group()
        retry.add_argument(
            "--retry", type=UUID, metavar="ID", help="Attempt this failed or queued one now."
        )
        retry.add_argument(
            "--retry-failed", action="store_true", help="Attempt all failed ones now."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """List the deliveries, or retry them."""
        if options["retry"]:
            return _retried(options["retry"])
        if options["retry_failed"]:
            return self._retry_failed(options["kind"])
        return _shown(options)

    def _retry_failed(self, kind: str | None) -> CommandResult:
        failed = Delivery.objects.filter(state="failed")
        queued = 0
        for delivery in failed.filter(kind=kind) if kind else failed:
            try:
                _retry(delivery)
            except NotRetryable as exc:
                self.stderr.write(f"{delivery.pk}: {exc}.")
            else:
                queued += 1
        return CommandResult({"queued": queued}, f"{queued} queued.")


def _retried(key: UUID) -> CommandResult:
    delivery = Delivery.objects.filter(pk=key).first()
    if delivery is None:
        raise CommandRefused("delivery_not_found", f"There is no delivery {key}.")
    try:
        _retry(delivery)
    except NotRetryable as exc:
        raise CommandRefused("not_retryable", f"{key} cannot be retried: {exc}.") from exc
    return CommandResult({"queued": 1}, f"{key} is queued.")


def _retry(delivery: Delivery) -> None:
    """Attempt it again now, and record that. Raises NotRetryable."""
    with transaction.atomic():
        queue.retry(delivery, now=timezone.now())
        trail.add(
            None,
            OutboxTag.CLI_DELIVERY_RETRY,
            organization_id=delivery.organization_id,
            data={"delivery": str(delivery.pk), "template": delivery.template},
        )


def _shown(options: dict[str, Any]) -> CommandResult:
    rows = Delivery.objects.order_by("-id")
    for name in ("state", "kind"):
        if options[name]:
            rows = rows.filter(**{name: options[name]})
    shown = [_row(delivery) for delivery in rows[: min(max(0, options["limit"]), MOST_SHOWN)]]
    counts = Delivery.objects.values_list("state").annotate(number=Count("pk")).order_by("state")
    totals = dict(counts)
    said = ", ".join(f"{state} {number}" for state, number in totals.items())
    lines = [*_table(shown), f"Total: {said or 'none'}."]
    return CommandResult({"deliveries": shown, "totals": totals}, "\n".join(lines))


def _row(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": str(delivery.pk),
        "kind": delivery.kind,
        "template": delivery.template,
        "to": delivery.hint,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "error": delivery.error,
        "next": _time(delivery.next_attempt_at),
        "created": _time(delivery.created_at),
        "organization": delivery.organization_id,
        "user": str(delivery.user_id) if delivery.user_id else None,
    }


def _time(at: datetime | None) -> str | None:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at else None


def _table(rows: list[dict[str, Any]]) -> list[str]:
    cells = [COLUMNS, *(tuple(str(row[name] or "") for name in COLUMNS) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
