"""Where: organizations and their environments."""

from typing import Any, ClassVar, Final

from django.db import models
from django.db.models.functions import Lower

from platform_site.lib.scoping import TenantModel

BUILT_IN: Final = ("live", "sandbox")


class Organization(models.Model):
    """A tenant: it owns users, environments and everything in them."""

    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        """Give the name."""
        return self.name


class Environment(TenantModel):
    """A world of data inside an organization.

    slug: the public id, immutable; name: a label. Each is unique in the organization, and no name
    is another's slug, since login and switch take either. A deleted environment keeps its row
    until its data is dropped; its slug and name are free at once.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="environments"
    )
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=100)
    is_built_in = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """Names and slugs are unique among the environments that are not deleted."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                "organization",
                "slug",
                condition=models.Q(deleted_at=None),
                name="environment_slug_unique",
            ),
            models.UniqueConstraint(
                "organization",
                Lower("name"),
                condition=models.Q(deleted_at=None),
                name="environment_name_unique",
            ),
        ]

    def __str__(self) -> str:
        """Give the public id."""
        return self.slug
