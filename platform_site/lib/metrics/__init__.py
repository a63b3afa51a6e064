"""Prometheus metrics: of the web processes, and figures read from the database at a scrape.

Labels have few values, none of them a tenant's: no organization, user, address or name that
someone chose (tests/rules/test_metrics.py).
"""
