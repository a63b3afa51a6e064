"""A way back in that does not bypass the second factor.

Door: conf, tasks.
Imports: accounts, audit, common, environments, organizations, outbox, twofactor.
"""
