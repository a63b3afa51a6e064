"""What apps keep for a tenant, through the life of an environment and of an organization.

An app that keeps something subclasses ``TenantData`` in its own ``tenant_data.py``, and adds it in
``AppConfig.ready()``: ``ALL.append(...)``. All are called in the order of INSTALLED_APPS.
"""

from typing import Final

from common.archives import ZipWriter
from common.principals import Scope
from common.provided import Provided


class TenantData:
    """One app's part; a method that does nothing is for an app that has nothing to do there."""

    def contents_of(self, scope: Scope, *, request_id: str) -> dict[str, int | None]:
        """Return numbers that are shown before an environment is deleted; None: not known now."""
        return {}

    def environment_cloned(self, organization_id: int, source_pk: int, environment_pk: int) -> None:
        """Begin the copy of an environment's data, in the caller's transaction."""

    def environment_deleted(self, environment_pk: int) -> None:
        """Close an environment, in the caller's transaction; its data stays for the retention."""

    def environment_dropped(self, environment_pk: int) -> None:
        """Delete an environment's data; safe to repeat.

        Raises PlatformError where a server does not answer; it is called again later.
        """

    def export(self, organization_id: int, archive: ZipWriter) -> None:
        """Write an organization's data to its archive, without secrets. Raises ArchiveRefused."""

    def obstacles_of(self, organization_id: int) -> list[str]:
        """Return sentences about what has to be done before the organization can be deleted."""
        return []

    def organization_erased(self, organization_id: int) -> None:
        """End what belongs to a closed organization, before its members are deleted.

        Safe to repeat. Raises PlatformError as ``environment_dropped`` does.
        """


ALL: Final[list[TenantData]] = []

# --- about the database of an environment, by the environment's key ---
DATABASE_STATE: Final = Provided[[int], str]("the state of an environment's database")
DATABASE_ERROR: Final = Provided[[int], str | None]("the error of an environment's copy")
DATABASE_PROGRESS: Final = Provided[[int], float | None]("the progress of an environment's copy")
# How many environments an organization may have.
ENVIRONMENT_LIMIT: Final = Provided[[int], int]("the limit of environments")
