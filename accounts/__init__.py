"""Users: who they are, how they sign in.

Door: conf, management, urls.
Imports: audit, common, environments, outbox.
"""
