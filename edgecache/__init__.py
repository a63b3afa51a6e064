"""The edge cache, its Django app.

Door: conf, management, staff_pages.
Imports: accounts, audit, common, environments, organizations.
"""
