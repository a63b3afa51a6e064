"""What users have in an environment: sessions and API keys."""

from accounts.api_keys import api_keys
from accounts.sessions import sessions
from environments.tenant_data import TenantData


class AccountsData(TenantData):
    """Sessions and API keys end with their environment."""

    def environment_deleted(self, environment_pk: int) -> None:
        """End what acts in the environment."""
        sessions.on_environment_deleted(environment_pk)
        api_keys.on_environment_deleted(environment_pk)
