"""Rates, the ledger, charges, payouts and credits of the edge cache.

Door: metrics, tasks, verify_statement.
Imports: audit, common, edgecache, environments.
"""
