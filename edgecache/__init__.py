"""The edge cache, its Django app.

Door: conf, management, staff_pages.
Stands on: accounts, audit, common, environments, organizations.
"""
