"""SQL over HTTP into tenants' databases, its Django app.

Door: conf, management, urls.
Imports: audit, common, environments.
"""
