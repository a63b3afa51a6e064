"""Attacks on the isolation of tenants, as data.

Door: check.
Imports: clusters, common, databases, hardening, models, pg.
"""
