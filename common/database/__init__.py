"""The control database: the query of each request, deadlines.

Door: prepared, request_deadline.
Imports: common.
"""
