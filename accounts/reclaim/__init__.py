"""An unverified address goes to the person who proves the mailbox.

Door: address_release.
Imports: account_lifecycle, audit, audit_tags, common, environments, errors, models, notices,
organization_admins, outbox, signin.
"""
