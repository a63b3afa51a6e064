"""The base of views: authentication, bodies, viewsets.

Door: bodies, views, viewsets.
Imports: common.
"""
