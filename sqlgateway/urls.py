"""Paths of the SQL gateway."""

from platform_site.lib.viewsets import Router
from sqlgateway.api.imports import ImportViewSet
from sqlgateway.api.schema import ExtensionViewSet, SchemaViewSet
from sqlgateway.api.sql import SqlViewSet
from sqlgateway.api.transactions import TransactionViewSet

router = Router()
router.register("v1/sql", SqlViewSet)
router.register("v1/sql/schema", SchemaViewSet)
router.register("v1/sql/transactions", TransactionViewSet)
router.register("v1/environments/<str:environment_id>/extensions", ExtensionViewSet)
router.register("v1/sql", ImportViewSet)

urlpatterns = router.urls
