"""PostgreSQL and the platform's processes on one machine (`make run`), and temporary clusters.

Imports no Django, so that it can prepare what Django needs.
"""
