"""Paths of webhooks."""

from accounts.webhooks.views import WebhookDeliveryViewSet, WebhookViewSet
from platform_site.lib.viewsets import Router

router = Router()
router.register("v1/webhooks", WebhookViewSet)
router.register("v1/webhooks/<str:webhook_id>/deliveries", WebhookDeliveryViewSet)

urlpatterns = router.urls
