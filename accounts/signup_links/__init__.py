"""Sign-up by a mailed link.

Door: links, views.
Imports: audit, audit_tags, common, environments, errors, mailed_secrets, models, outbox, passwords,
reclaim, serializers, sessions, signin.
"""
