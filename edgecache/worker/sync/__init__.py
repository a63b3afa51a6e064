"""Does what the brain asks, and reports.

Door: heartbeat, jobs, reports, scrub.
Stands on: brain_calls, edgecache.http, edgecache.protocol, node, receipts, receiving, store.
"""
