"""Paths of the environments."""

from environments.views import EnvironmentViewSet, OrganizationViewSet
from platform_site.lib.viewsets import Router

router = Router()
router.register("v1/environments", EnvironmentViewSet)
router.register("v1", OrganizationViewSet)

urlpatterns = router.urls
