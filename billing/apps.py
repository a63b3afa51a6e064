"""The application's name."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """Usage of the edge cache, what it costs, and what operators earn."""

    name = "billing"
    label = "billing"
    verbose_name = "Billing"

    def ready(self) -> None:
        """Add the contents of organizations."""
        # Django wants models loaded first.
        from billing.tenant_data import BillingData  # noqa: PLC0415 - as above
        from environments import tenant_data  # noqa: PLC0415 - as above

        tenant_data.ALL.append(BillingData())
