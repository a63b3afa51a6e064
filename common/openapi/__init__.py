"""How an endpoint is described.

Door: document, shapes, tags.
Imports: api, common.
"""
