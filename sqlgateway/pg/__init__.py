"""Connections to PostgreSQL as a tenant's role.

Door: administrator, changed_roles, message_stream, pool, session_settings, tenant_connection,
watchdog, wire.
Imports: audit, audit_tags, clusters, common, errors, formats, hardening, models, names.
"""
