"""Paths of billing."""

from edgecache.billing.api.views import (
    BalanceViewSet,
    EarningsViewSet,
    PayoutMethodViewSet,
    PayoutViewSet,
    UsageViewSet,
)
from platform_site.lib.viewsets import Router

router = Router()
router.register("v1/balance", BalanceViewSet)
router.register("v1/usage", UsageViewSet)
router.register("v1/cache/payouts", PayoutViewSet)
router.register("v1/cache", PayoutMethodViewSet)
router.register("v1/cache", EarningsViewSet)

urlpatterns = router.urls
