"""Members, invitations, export and deletion of an organization.

Door: conf, created, members, staff_access, tasks, tenant_data, urls.
Imports: accounts, audit, common, environments, outbox.
"""
