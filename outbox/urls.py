"""Paths of webhooks."""

from common.api.viewsets import Router
from outbox.webhooks.views import WebhookDeliveryViewSet, WebhookEndpointViewSet

router = Router()
router.register("v1/webhooks", WebhookEndpointViewSet)
router.register("v1/webhooks/<str:webhook_id>/deliveries", WebhookDeliveryViewSet)

urlpatterns = router.urls
