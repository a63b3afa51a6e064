"""Paths of the SQL gateway."""

from platform_site.lib.viewsets import Router
from sqlgateway.api.sql import SqlViewSet

router = Router()
router.register("v1/sql", SqlViewSet)

urlpatterns = router.urls
