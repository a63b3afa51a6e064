"""PostgreSQL servers, and which database is on which.

Door: placements, request_limits, servers.
Stands on: common, errors, hardening, models, names.
"""
