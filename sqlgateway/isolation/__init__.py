"""Attacks on the isolation of tenants, as data, and their run against a cluster.

attacks/: one TOML file for each subject. attacks.py reads them. check.py runs the harmless ones
against a cluster in production (``manage.py checkisolation``); the tests run all of them through
``POST /v1/sql``.
"""
