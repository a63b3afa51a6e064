"""What billing writes into the audit trail."""

from audit.tags import AuditTag


class BillingTag(AuditTag):
    """Tags of billing."""

    PAYOUT_METHOD_UPDATE = (
        "api:payout_method:update",
        "The payout method was set.",
        "set the payout method",
    )
    PAYOUT_METHOD_DELETE = (
        "api:payout_method:delete",
        "The payout method was removed.",
        "removed the payout method",
    )
    PAYOUT_ACCOUNT_CONNECT = (
        "api:payout_account:connect",
        "An account to be paid to was begun.",
        "began to connect an account to be paid to",
    )
    PAYOUT_CREATE = ("api:payout:create", "A payout was requested.", "requested a payout")
    TOP_UP_CREATE = (
        "api:top_up:create",
        "A purchase of credits was begun.",
        "began to buy credits",
    )
    SPEND_CAP_UPDATE = ("api:spend_cap:update", "The spend cap was set.", "set the spend cap")
    SPEND_CAP_DELETE = (
        "api:spend_cap:delete",
        "The spend cap was removed.",
        "removed the spend cap",
    )
    ADMIN_PAYOUT_HOLD = ("admin:payout:hold", "Staff stopped a payout that was not sent yet.")
    ADMIN_PAYOUT_APPROVE = ("admin:payout:approve", "Staff let a held payout go on.")
    ADMIN_PAYOUT_CONFIRM = ("admin:payout:confirm", "Staff marked a payout by hand as paid.")
    ADMIN_PAYOUT_REVERSE = ("admin:payout:reverse", "Staff marked a payout by hand as failed.")
    ADMIN_PAYOUT_RECORD = (
        "admin:payout:record",
        "Staff booked a payment of a provider's that was missing after a restore.",
    )
    ADMIN_PAYOUT_RECONCILE = (
        "admin:payout:reconcile",
        "Staff let payouts go on after a restore: all payments since are accounted for.",
    )
    ADMIN_USAGE_REFUND = ("admin:usage:refund", "Staff refunded what a usage line cost.")
    ADMIN_RATE_SET = ("admin:rate:set", "Staff set a rate from a later hour on.")
    ADMIN_CREDITS_GRANT = ("admin:credits:grant", "Staff granted or booked credits.")
    QUARANTINE_APPEAL = (
        "api:quarantine:appeal",
        "A node's quarantine was appealed against.",
        "appealed against a node's quarantine",
    )
    SYNC_NODE_QUARANTINE = ("sync:node:quarantine", "A worker node was quarantined.")
    ADMIN_EARNINGS_FORFEIT = (
        "admin:earnings:forfeit",
        "Staff took unpaid earnings of a quarantined node.",
    )
    ADMIN_APPEAL_DECIDE = ("admin:appeal:decide", "Staff granted or rejected an appeal.")
    PAYOUT_CANCEL = ("api:payout:cancel", "A payout was cancelled.", "cancelled a payout")
