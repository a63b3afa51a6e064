"""Answers clients.

Door: app, reads.
Imports: edgecache.http, edgecache.protocol, edgecache.runtime, node, receipts, receiving, refusals,
store, tracing.
"""
