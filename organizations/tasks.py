"""Background tasks of invitations, and of deletions and exports of organizations."""

from uuid import UUID

from django.utils import timezone
from procrastinate.contrib.django import app

from common.jobs import defer_once, long_job_lock
from common.scoping import unscoped, within_organization
from organizations import deletion, exports, invitations
from organizations.models import OrganizationExport


@app.periodic(cron="41 * * * *")
@app.task(queueing_lock="forget_expired_invitations")
@unscoped("upkeep for every organization")
def forget_expired(timestamp: int) -> None:
    """Delete invitations that were over long ago."""
    invitations.delete_old(now=timezone.now())


@app.periodic(cron="23 * * * *")
@app.task(queueing_lock="delete_due_organizations")
@unscoped("upkeep for every organization")
def delete_due(timestamp: int) -> None:
    """Queue one job for each organization whose delay is over."""
    for organization_id in deletion.due(now=timezone.now()):
        name = f"delete_organization:{organization_id}"
        job = delete_organization.configure(lock=name, queueing_lock=name)
        defer_once(job, organization_id=organization_id)


@app.task
def delete_organization(organization_id: int) -> None:
    """Delete one organization permanently; the next hour's job tries again after a failure."""
    with within_organization(organization_id):
        deletion.carry_out(organization_id, now=timezone.now())


def queue_export(row: OrganizationExport) -> None:
    """Queue the writing of an export, in the caller's transaction."""
    lock = long_job_lock(row.organization_id)
    write_export.configure(lock=lock).defer(export_id=str(row.pk))


@app.task
@unscoped("a job knows its row alone")
def write_export(export_id: str) -> None:
    """Write one export; a failed export has to be requested again."""
    exports.run(UUID(export_id))


@app.periodic(cron="37 * * * *")
@app.task(queueing_lock="maintain_organization_exports")
@unscoped("upkeep for every organization")
def maintain_exports(timestamp: int) -> None:
    """Delete expired exports."""
    exports.maintain(now=timezone.now())
