"""Prometheus metrics of the web processes, and figures read from the database at each scrape.

Labels have few values and contain no data of tenants, such as organizations, users, addresses or
chosen names (tests/rules/test_metrics.py).
"""
