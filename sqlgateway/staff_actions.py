"""Actions of staff on databases in the admin: rotate passwords, move to another cluster."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from django.db import transaction

from accounts.audit import audit
from common.admin.actions import ConfirmedAction, StaffAction
from common.errors import Conflict
from sqlgateway import tasks
from sqlgateway.audit_tags import SqlTag
from sqlgateway.models import Cluster, Database


def moves() -> Sequence[StaffAction]:
    """Return an action for each open cluster, if there are several."""
    clusters = list(Cluster.objects.filter(state=Cluster.State.OPEN).order_by("name"))
    if len(clusters) < 2:
        return ()
    return [
        StaffAction(
            f"move_{cluster.pk}",
            f"Move to {cluster.name}",
            f"These databases are copied to the cluster {cluster.name} in the background. Their "
            "requests wait while the copy is compared; on any error they stay where they are.",
            partial(_move, cluster),
        )
        for cluster in clusters
    ]


def _rotate(confirmed: ConfirmedAction, database: Database) -> bool:
    """Queue the rotation; False if one is queued already.

    Raises Conflict for a database that is not active.
    """
    if database.state != Database.State.ACTIVE or database.organization_id is None:
        raise Conflict(f"The database is {database.state}: only an active one gets new passwords.")
    with transaction.atomic():
        if not tasks.queue_rotation(database.pk):
            return False
        audit.record_staff(
            confirmed.request,
            SqlTag.ADMIN_DATABASE_ROTATE,
            organization_id=database.organization_id,
            database=database.pk,
            reason=confirmed.reason,
        )
    return True


ROTATE: Final = StaffAction(
    "rotate_passwords",
    "Rotate passwords",
    "The passwords of these databases' roles are replaced in the background. No request fails; "
    "sessions that somebody opened with the old ones end within minutes.",
    _rotate,
)


def _move(cluster: Cluster, confirmed: ConfirmedAction, database: Database) -> bool:
    """Queue the move; False if the database is there already, or its move is queued already.

    Raises Conflict for a database that is not active.
    """
    if database.cluster_id == cluster.pk:
        return False
    if database.state != Database.State.ACTIVE or database.organization_id is None:
        raise Conflict(f"The database is {database.state}: only an active one can be moved.")
    with transaction.atomic():
        if not tasks.queue_move(database, cluster):
            return False
        audit.record_staff(
            confirmed.request,
            SqlTag.ADMIN_DATABASE_MOVE,
            organization_id=database.organization_id,
            database=database.pk,
            cluster=cluster.name,
            reason=confirmed.reason,
        )
    return True
