"""SQL over HTTP into tenants' databases, its Django app.

Door: conf, management, tasks, urls.
Imports: audit, common, environments.
"""
