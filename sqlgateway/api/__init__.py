"""Endpoints.

Door: history, imports, running, saved_queries, schema, sql, transactions, usage.
Imports: audit, audit_tags, clusters, common, databases, environments, errors, formats, models, run,
schema, transactions, transfer.
"""
