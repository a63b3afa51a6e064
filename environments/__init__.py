"""Organizations' and environments' rows; the scope of a request.

Door: admin, conf, environments, errors, models, request_activity, serializers, tasks, tenant_data.
Imports: audit, common.
"""
