"""Users: who they are, how they sign in.

Door: admin, conf, management, middleware, tasks, urls.
Imports: audit, common, environments, outbox.
"""
