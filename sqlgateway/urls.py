"""Paths of the SQL gateway."""

from platform_site.lib.viewsets import Router
from sqlgateway.views import SqlViewSet

router = Router()
router.register("v1/sql", SqlViewSet)

urlpatterns = router.urls
