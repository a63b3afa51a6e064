"""What runs an installation: `make run`, backup, doctor, health, the pages made from the code.

Door: backup, conf_modules, doctor, health, releases.
Imports: accounts, audit, billing, common, console, edgecache, environments, oauth, organizations,
outbox, recovery, sqlgateway, twofactor.
"""
