"""Restore the password, settings and privileges of a role that its tenant locked out.

A role, also a reader's, can change its own password and settings and drop its default privileges
(DROP OWNED); all users of an organization log in as the same three roles.
"""

import psycopg
import structlog
from django.db import transaction

from accounts.audit import audit
from platform_site.lib.errors import NotFound
from platform_site.lib.permissions import Role
from sqlgateway.audit_tags import SqlTag
from sqlgateway.errors import EngineAway
from sqlgateway.hardening.database import grant_access, grant_inside
from sqlgateway.hardening.role import ensure_roles, forget_settings
from sqlgateway.models import Database
from sqlgateway.provisioning import names
from sqlgateway.provisioning.clusters import address_of, administer
from sqlgateway.provisioning.placements import CACHE, Login

log = structlog.get_logger(__name__)


def repair(login: Login, *, with_grants: bool = False) -> None:
    """Restore a role; does nothing if another process just did.

    with_grants: restore the default privileges as well.

    Raises NotFound (the database is not the environment's any more), EngineAway.
    """
    with transaction.atomic():
        database = (
            Database.unscoped.select_related("cluster")  # unscoped: by key, from a placement
            .select_for_update(of=("self",))
            .filter(pk=login.database_id)
            .first()
        )
        if database is None or database.state != Database.State.ACTIVE:
            raise NotFound
        CACHE.forget(database.environment_id)
        if database.passwords[login.role] != login.password or database.dbname != login.dbname:
            return
        try:
            _restore(database, login.role, with_grants=with_grants)
        except psycopg.Error as exc:
            # An object is missing on the server; the message names the database.
            log.warning("sql_role_not_healed", database=database.pk, kind=type(exc).__name__)
            raise EngineAway from None
        database.save(update_fields=["secrets"])
        _note_healed(database, login.role)


def _restore(database: Database, role: Role, *, with_grants: bool) -> None:
    user = database.roles[role]
    passwords = {**database.passwords, role: names.password()}
    address = address_of(database.cluster)
    with administer(address) as connection:
        ensure_roles(connection, [(user, passwords[role])])
        forget_settings(connection, user, database.dbname)
        grant_access(connection, database.dbname, database.roles)
    if with_grants:
        # The platform's defaults for future objects. On existing ones DROP OWNED revokes nothing
        # from a role that does not own them, so nothing is granted again here.
        with administer(address, database.dbname) as inside:
            grant_inside(inside, database.roles)
    database.passwords = passwords


def _note_healed(database: Database, role: Role) -> None:
    log.warning("sql_role_healed", database=database.pk, role=role)
    organization_id = database.organization_id
    if organization_id is None or database.environment is None:
        return
    audit.add(
        None,
        SqlTag.ROLE_HEAL,
        organization_id=organization_id,
        environment_id=database.environment.slug,
        actor="platform",
        data={"role": role},
    )
