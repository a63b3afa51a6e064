"""How an endpoint is described.

Door: document, operations, shapes, tags.
Stands on: api, common.
"""
