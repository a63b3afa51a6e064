"""Creates, measures, rotates, copies and drops tenants' databases.

Door: cluster_admission, copies, organization_contents, password_rotation, provisioning, quotas,
stock, tasks, tenant_databases.
Imports: audit, audit_tags, clusters, common, environments, errors, hardening, models, names,
outbox, pg.
"""
