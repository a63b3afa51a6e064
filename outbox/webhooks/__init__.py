"""Events to organizations' servers.

Door: delivery_queue, dispatch, events, views.
Stands on: audit, audit_tags, common, environments, errors, models.
"""
