"""Users: who they are, how they sign in.

Door: conf, management, urls.
Stands on: audit, common, environments, outbox.
"""
