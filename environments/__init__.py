"""Organizations' and environments' rows; the scope of a request.

Door: conf, environments, errors, models, request_activity, serializers.
Imports: audit, common.
"""
