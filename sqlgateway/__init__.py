"""SQL over HTTP into tenants' databases, its Django app.

Door: conf, management, urls.
Stands on: audit, common, environments.
"""
