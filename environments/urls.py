"""Paths of the environments."""

from common.api.viewsets import Router
from environments.views import EnvironmentViewSet, OrganizationViewSet

router = Router()
router.register("v1/environments", EnvironmentViewSet)
router.register("v1", OrganizationViewSet)

urlpatterns = router.urls
