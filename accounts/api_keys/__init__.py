"""Keys of programs.

Door: api_keys, authentication, views.
Imports: audit, audit_tags, common, environments, errors, models, notices, serializers.
"""
