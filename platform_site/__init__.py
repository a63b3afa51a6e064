"""The project: settings, URLs, the servers' entry points, the admin site.

Door: startup.
Stands on: accounts, audit, billing, common, console, edgecache, environments, oauth, operations,
organizations, outbox, recovery, sqlgateway, twofactor.
"""
