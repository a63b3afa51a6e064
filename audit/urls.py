"""Paths of the audit trail."""

from audit.views import AuditEventViewSet
from common.api.viewsets import Router

router = Router()
router.register("v1/audit", AuditEventViewSet)

urlpatterns = router.urls
