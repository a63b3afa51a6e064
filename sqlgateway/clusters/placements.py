"""Placements: the database of an environment as a value, cached in each process."""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from common.errors import NotFound
from common.permissions import Role
from common.scoping import unscoped
from sqlgateway.clusters.organization_limits import Quota
from sqlgateway.clusters.servers import ClusterAddress, address_of
from sqlgateway.hardening.tenant_roles import RoleSpec
from sqlgateway.models import Database

# Long enough to save most queries, short enough that a moved database is found soon. The deletion
# of an environment takes effect immediately: its logins are disabled, and its sessions end.
CACHE_S: Final = 30.0
CACHE_ENTRIES: Final = 4096
FIRST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Login:
    """The data with which a connection logs in as one role of one database.

    organization_id: None for a database in stock.
    since: when the password was set; None for the first one.
    """

    database_id: int
    address: ClusterAddress
    dbname: str
    role: Role
    user: str
    password: str = field(repr=False)
    organization_id: int | None = None
    since: datetime | None = None

    @property
    def key(self) -> tuple[int, str, str]:
        """The key of cached connections, without the password."""
        return (self.address.cluster_id, self.dbname, self.user)

    def is_older_than(self, other: "Login") -> bool:
        """True if the other login has a newer password."""
        return (self.since or FIRST) < (other.since or FIRST)

    @property
    def expected(self) -> RoleSpec:
        """The role as it should be on the server."""
        return RoleSpec(self.user, self.role, self.dbname, self.password)


@dataclass(frozen=True, slots=True)
class Placement:
    """A database and its three roles.

    quota: the organization's limits.
    since: when the passwords were set; None for the first ones.
    """

    database_id: int
    environment_pk: int | None
    address: ClusterAddress
    dbname: str
    users: dict[Role, str]
    passwords: dict[Role, str] = field(repr=False)
    organization_id: int | None = None
    quota: Quota = field(default_factory=Quota)
    since: datetime | None = None

    def login(self, role: Role) -> Login:
        """Return the login of one of the roles."""
        return Login(
            self.database_id,
            self.address,
            self.dbname,
            role,
            self.users[role],
            self.passwords[role],
            self.organization_id,
            self.since,
        )


def placement_of(database: Database) -> Placement:
    """Return a row's placement.

    Raises EngineUnavailable if its cluster was never probed and does not answer.
    """
    return Placement(
        database_id=database.pk,
        environment_pk=database.environment_id,
        address=address_of(database.cluster),
        dbname=database.dbname,
        users=database.roles,
        passwords=database.passwords,
        organization_id=database.organization_id,
        quota=quota_of_row(database),
        since=database.passwords_since,
    )


def quota_of_row(database: Database) -> Quota:
    """Return the limits of a database's organization."""
    return Quota.of(getattr(database.organization, "quota", None))


@unscoped("the row of a login that is in use")
def read_again(login: Login) -> Login:
    """Read the login again: the password or the cluster may have changed.

    Raises NotFound (the database is no longer in use), EngineUnavailable.
    """
    database = (
        Database.objects.select_related("cluster", "organization__quota")
        .filter(pk=login.database_id, state=Database.State.ACTIVE)
        .first()
    )
    if database is None:
        raise NotFound
    return placement_of(database).login(login.role)


class PlacementCache:
    """Placements by environment, cached for CACHE_S."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, tuple[float, Placement]] = OrderedDict()

    def cluster_of(self, environment_pk: int) -> int:
        """Return the key of the cluster as it was last read, 0 if it is not known."""
        entry = self._entries.get(environment_pk)
        return 0 if entry is None else entry[1].address.cluster_id

    def get(self, environment_pk: int) -> Placement | None:
        """Return a placement that is not stale, or None."""
        entry = self._entries.get(environment_pk)
        if entry is None or entry[0] < time.monotonic():
            return None
        return entry[1]

    def statements(self, environment_pk: int) -> int | None:
        """Return the organization's own limit as it was last read, even if it is stale."""
        entry = self._entries.get(environment_pk)
        return None if entry is None else entry[1].quota.own.get("statements")

    def put(self, environment_pk: int, placement: Placement) -> None:
        """Keep a placement."""
        with self._lock:
            self._entries[environment_pk] = (time.monotonic() + CACHE_S, placement)
            while len(self._entries) > CACHE_ENTRIES:
                self._entries.popitem(last=False)

    def forget(self, environment_pk: int | None) -> None:
        """Remove a placement, so that it is read again."""
        with self._lock:
            self._entries.pop(environment_pk or 0, None)

    def clear(self) -> None:
        """Remove all placements."""
        with self._lock:
            self._entries.clear()


PLACEMENT_CACHE: Final = PlacementCache()
