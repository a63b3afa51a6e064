"""Forms and actions of staff in the admin.

Door: actions, forms, quarantines.
Imports: audit, audit_tags, common, consumer_credits, debts, environments, ledger, models, money,
payouts, quarantines, topups, usage.
"""
