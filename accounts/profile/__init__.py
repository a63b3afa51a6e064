"""The user's own address and password.

Door: mailbox, views.
Imports: account_lifecycle, audit, audit_tags, common, errors, mailed_secrets, models, notices,
outbox, passwords, reclaim, serializers, sessions, signin.
"""
