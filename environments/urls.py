"""Paths of the environments."""

from environments.views import EnvironmentViewSet
from platform_site.lib.viewsets import Router

router = Router()
router.register("v1/environments", EnvironmentViewSet)

urlpatterns = router.urls
