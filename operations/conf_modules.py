"""Every module that has tables of settings."""

from typing import Final

from accounts import conf as accounts_conf
from audit import conf as audit_conf
from billing import conf as billing_conf
from common import conf
from common.settings.table import rows
from edgecache import conf as cache_conf
from edgecache.brain.conf import brain as brain_conf
from environments import conf as environments_conf
from oauth import conf as oauth_conf
from oauth.providers import conf as provider_conf
from operations.backup import conf as backup_conf
from organizations import conf as organizations_conf
from outbox import conf as outbox_conf
from recovery import conf as recovery_conf
from sqlgateway import conf as sql_conf
from twofactor import conf as twofactor_conf

CONF_MODULES: Final = (
    conf,
    accounts_conf,
    audit_conf,
    outbox_conf,
    oauth_conf,
    organizations_conf,
    provider_conf,
    environments_conf,
    twofactor_conf,
    recovery_conf,
    sql_conf,
    cache_conf,
    billing_conf,
    brain_conf,
    backup_conf,
)


def variables() -> frozenset[str]:
    """Return the names of all settings, aliases too."""
    tables = [table for module in CONF_MODULES for table in module.TABLES]
    return frozenset(name for table in tables for row in rows(table).values() for name in row.names)
