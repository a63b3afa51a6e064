"""Organizations with their own limits, as the admin lists them: all, also those that have none."""

from environments.models import Organization


class OrganizationLimits(Organization):
    """An organization; ``quota`` is its row of own limits, if there is one."""

    class Meta:
        """No table of its own."""

        proxy = True
        verbose_name = "organization with its limits"
        verbose_name_plural = "organizations with their limits"
