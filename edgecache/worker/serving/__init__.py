"""Answers clients.

Door: app, reads.
Stands on: edgecache.http, edgecache.protocol, edgecache.runtime, node, receipts, receiving,
refusals, store, tracing.
"""
