"""The base of pages in the admin.

Door: actions, columns, filters, forms, pages.
Imports: common.
"""
