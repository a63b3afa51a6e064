"""Transactions over several requests.

Door: operations.
Imports: clusters, common, databases, environments, errors, models, pg, run.
"""
