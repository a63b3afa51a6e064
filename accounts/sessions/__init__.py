"""Sessions: open, refresh, end; the authentication of requests.

Door: authentication, known_devices, own_sessions, refresh, sessions.
Imports: audit, audit_tags, common, environments, errors, models, notices, outbox, tokens.
"""
