"""Audit tags of messages and webhooks."""

from audit.tags import AuditTag


class OutboxTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    WEBHOOK_CREATE = ("api:webhook:create", "An admin added a webhook.", "added a webhook")
    WEBHOOK_UPDATE = ("api:webhook:update", "An admin changed a webhook.", "changed a webhook")
    WEBHOOK_ROTATE = (
        "api:webhook:rotate",
        "An admin replaced a webhook's secret.",
        "replaced a webhook's secret",
    )
    WEBHOOK_DELETE = ("api:webhook:delete", "An admin removed a webhook.", "removed a webhook")
    WEBHOOK_RESEND = (
        "api:webhook:resend",
        "An admin sent a delivery again.",
        "sent a webhook's delivery again",
    )
    SYSTEM_WEBHOOK_DISABLE = (
        "system:webhook:disable",
        "A webhook was disabled: its deliveries failed for days, or it answered 410 Gone.",
    )
    CLI_DELIVERY_RETRY = ("cli:delivery:retry", "An operator sent a mail or text message again.")
    ADMIN_DELIVERY_RETRY = ("admin:delivery:retry", "Staff sent a mail or text message again.")
