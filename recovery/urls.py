"""Paths of recovery."""

from platform_site.lib.viewsets import Router
from recovery.views import MemberFactorsViewSet, RecoveryViewSet, SecurityQuestionViewSet

router = Router()
router.register("v1/auth/recovery", RecoveryViewSet)
router.register("v1/auth/recovery", SecurityQuestionViewSet)
router.register("v1/members", MemberFactorsViewSet)

urlpatterns = router.urls
