"""Paths of billing."""

from billing.api.views import (
    BalanceViewSet,
    BilledUsageViewSet,
    EarningsViewSet,
    PaymentWebhookViewSet,
    PayoutMethodViewSet,
    PayoutViewSet,
    QuarantineViewSet,
    SpendCapViewSet,
    TopUpViewSet,
)
from common.api.viewsets import Router

router = Router()
router.register("v1/balance/top-ups", TopUpViewSet)
router.register("v1/balance", BalanceViewSet)
router.register("v1/balance", SpendCapViewSet)
router.register("v1/billing/webhooks", PaymentWebhookViewSet)
router.register("v1/usage", BilledUsageViewSet)
router.register("v1/cache/payouts", PayoutViewSet)
router.register("v1/cache/quarantines", QuarantineViewSet)
router.register("v1/cache", PayoutMethodViewSet)
router.register("v1/cache", EarningsViewSet)

urlpatterns = router.urls
