"""An environment's database, through its life."""

from common.archives import ZipWriter
from common.principals import Scope
from environments.tenant_data import TenantData
from sqlgateway.databases import organization_contents, provisioning
from sqlgateway.schema import catalogue


class SqlData(TenantData):
    """The databases of environments."""

    def contents_of(self, scope: Scope, *, request_id: str) -> dict[str, int | None]:
        """Return the number of tables, and the database's size in bytes."""
        return catalogue.contents_of(scope, request_id=request_id)

    def environment_cloned(self, organization_id: int, source_pk: int, environment_pk: int) -> None:
        """Queue the copy. Raises EnvironmentNotReady."""
        provisioning.on_environment_cloned(organization_id, source_pk, environment_pk)

    def environment_deleted(self, environment_pk: int) -> None:
        """Disable the logins."""
        provisioning.on_environment_deleted(environment_pk)

    def environment_dropped(self, environment_pk: int) -> None:
        """Drop the database. Raises EngineUnavailable."""
        provisioning.on_environment_dropped(environment_pk)

    def export(self, organization_id: int, archive: ZipWriter) -> None:
        """Add a dump of each database."""
        organization_contents.write(organization_id, archive)
