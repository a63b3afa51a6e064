"""Members, invitations, export and deletion of an organization.

Door: conf, created, members, organization_contents, staff_access, urls.
Imports: accounts, audit, common, environments, outbox.
"""
