"""Events to organizations' servers.

Door: delivery_queue, dispatch, events, views.
Imports: audit, audit_tags, common, deliveries, environments, errors, failures, models.
"""
