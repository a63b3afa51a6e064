"""Attacks on the isolation of tenants, as data.

attacks/: a TOML file for each subject.
attacks.py: reads the files.
check.py: runs the harmless attacks against a cluster (``manage.py checkisolation``).
fixtures.py: the objects in the databases that are attacked.

The tests run all attacks through ``POST /v1/sql``.
"""
