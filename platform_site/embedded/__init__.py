"""PostgreSQL and the processes of one machine: `make run`, and throw-away clusters for tests.

Imports no Django, so that it can prepare what Django needs.
"""
