"""Paths of webhooks."""

from accounts.webhooks.views import WebhookDeliveryViewSet, WebhookEndpointViewSet
from common.api.viewsets import Router

router = Router()
router.register("v1/webhooks", WebhookEndpointViewSet)
router.register("v1/webhooks/<str:webhook_id>/deliveries", WebhookDeliveryViewSet)

urlpatterns = router.urls
