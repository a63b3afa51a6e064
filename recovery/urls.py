"""Paths of recovery."""

from common.api.viewsets import Router
from recovery.views import MemberFactorsViewSet, RecoveryViewSet, SecurityQuestionViewSet

router = Router()
router.register("v1/auth/recovery", RecoveryViewSet)
router.register("v1/auth/recovery", SecurityQuestionViewSet)
router.register("v1/members", MemberFactorsViewSet)

urlpatterns = router.urls
