"""PostgreSQL servers, and which database is on which.

Door: organization_limits, placements, servers, silence.
Imports: common, errors, hardening, models, names.
"""
