"""A way back in that does not bypass the second factor.

Door: conf.
Stands on: accounts, audit, common, environments, organizations, outbox, twofactor.
"""
