"""The platform's side: endpoints, and the only client of the brain.

Door: access_keys, audit_tags, buckets, client, cluster_status, errors, hosts, metrics_history,
nodes, objects, origins, staff_overview.
Imports: accounts, audit, common, models, organizations, outbox, protocol.
"""
