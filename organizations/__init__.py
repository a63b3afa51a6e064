"""Members, invitations, export and deletion of an organization.

Door: conf, created, members, organization_contents, staff_access, urls.
Stands on: accounts, audit, common, environments, outbox.
"""
