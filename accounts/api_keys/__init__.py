"""Keys of programs.

Door: api_keys, views.
Stands on: audit, audit_tags, common, environments, errors, models, notices, serializers.
"""
