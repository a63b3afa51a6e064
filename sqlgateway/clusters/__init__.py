"""PostgreSQL servers, and which database is on which.

Door: placements, request_limits, servers, silence.
Imports: common, errors, hardening, models, names.
"""
