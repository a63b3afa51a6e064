"""The project: settings, URLs, the servers' entry points, the admin site.

Door: startup.
Imports: accounts, audit, billing, common, console, edgecache, environments, oauth, operations,
organizations, outbox, recovery, sqlgateway, twofactor.
"""
