"""Sign-in with other providers, domains, roles from memberships.

Door: conf, errors, providers, sign_in_methods, tasks, urls.
Imports: accounts, audit, common, environments, organizations, outbox.
"""
