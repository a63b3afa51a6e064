"""The append-only audit trail.

Door: conf, models, tags, tasks, trail, urls.
Imports: common.
"""
