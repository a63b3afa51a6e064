"""What billing writes into the audit trail."""

from platform_site.lib.audit import AuditTag


class BillingTag(AuditTag):
    """Tags of billing."""

    PAYOUT_METHOD_UPDATE = ("api:payout_method:update", "The payout method was set.")
    PAYOUT_METHOD_DELETE = ("api:payout_method:delete", "The payout method was removed.")
    PAYOUT_CREATE = ("api:payout:create", "A payout was requested.")
    TOP_UP_CREATE = ("api:top_up:create", "A purchase of credits was begun.")
    PAYOUT_CANCEL = ("api:payout:cancel", "A payout was cancelled.")
