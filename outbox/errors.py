"""Errors of requests about webhooks."""

from common.errors import (
    Conflict,
    NotFound,
    TooManyRequests,
)


class WebhookNotFound(NotFound):
    """The organization has no webhook with this id."""

    code = "webhook_not_found"
    title = "There is no such webhook."


class WebhookDeliveryNotFound(NotFound):
    """The webhook has no delivery with this id, or it is older than 30 days."""

    code = "webhook_delivery_not_found"
    title = "There is no such delivery."


class WebhookIsOff(Conflict):
    """The webhook is disabled, so nothing is sent to it."""

    code = "webhook_is_off"
    title = "The webhook is disabled."


class TooManyWebhooks(Conflict):
    """The organization has reached its limit of webhooks."""

    code = "too_many_webhooks"
    title = "The organization has too many webhooks."


class WebhookSentTooOften(TooManyRequests):
    """The hourly limit of test events and repeated deliveries was reached."""

    code = "webhook_sent_too_often"
    title = "Too many deliveries were requested this hour."
