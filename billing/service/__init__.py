"""An organization without credits is stopped, and starts again.

Door: brain_notifications, spend_caps, states.
Imports: accounts, common, edgecache, ledger, models, money, outbox, statements.
"""
