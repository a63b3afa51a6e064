"""Endpoints of statements, payouts, top-ups and node operators.

Door: csv_statement.
Imports: audit, audit_tags, common, environments, errors, ledger, models, money, payouts,
quarantines, service, statements, topups.
"""
