"""Runs a request: admission, execution, results, idempotency, history.

Door: admission, boundaries, execution, gateway, history, idempotency, outcomes, parameters,
requests, results, running_requests, saved_queries, sqlstates, usage.
Imports: audit, audit_tags, clusters, common, databases, environments, errors, formats, hardening,
metrics, models, pg.
"""
