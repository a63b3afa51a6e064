"""Transactions over several requests.

Door: operations.
Stands on: clusters, common, databases, environments, errors, models, pg, run.
"""
