"""Paths of the SQL gateway."""

from common.api.viewsets import Router
from sqlgateway.api.history import ActivityViewSet, SqlHistoryViewSet
from sqlgateway.api.imports import ImportViewSet
from sqlgateway.api.running import RunningSqlViewSet, SqlCancelViewSet
from sqlgateway.api.saved_queries import SavedQueryViewSet
from sqlgateway.api.schema import ExtensionViewSet, SchemaViewSet
from sqlgateway.api.sql import SqlViewSet
from sqlgateway.api.transactions import TransactionViewSet
from sqlgateway.api.usage import SqlUsageViewSet

router = Router()
router.register("v1/sql", SqlViewSet)
router.register("v1/sql/activity", ActivityViewSet)
router.register("v1/sql/usage", SqlUsageViewSet)
router.register("v1/sql/schema", SchemaViewSet)
router.register("v1/sql/transactions", TransactionViewSet)
router.register("v1/environments/<str:environment_id>/extensions", ExtensionViewSet)
router.register("v1/sql", ImportViewSet)
router.register("v1/sql/history", SqlHistoryViewSet)
router.register("v1/sql/running", RunningSqlViewSet)
router.register("v1/sql/queries", SavedQueryViewSet)
# The last one: its path is that of the others with an id in the place of their names.
router.register("v1/sql", SqlCancelViewSet)

urlpatterns = router.urls
