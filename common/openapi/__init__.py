"""How an endpoint is described.

Door: document, operations, shapes, tags.
Imports: api, common.
"""
