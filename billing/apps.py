"""The application's name."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """Usage of the edge cache, what it costs, and what operators earn."""

    name = "billing"
    label = "billing"
    verbose_name = "Billing"
