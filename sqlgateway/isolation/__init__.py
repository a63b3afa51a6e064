"""Attacks on the isolation of tenants, as data.

Door: check.
Stands on: clusters, common, databases, hardening, models, pg.
"""
