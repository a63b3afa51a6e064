"""Members, invitations, export and deletion of an organization.

Door: conf, created, errors, invitation_acceptance, invitations, members, models, removals,
staff_access, tasks, tenant_data, urls.
Imports: accounts, audit, common, environments, outbox.
"""
