"""The append-only audit trail.

Door: conf, models, tags, trail, urls.
Imports: common.
"""
