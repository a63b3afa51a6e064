"""Does what the brain asks, and reports.

Door: heartbeat, jobs, reports, scrub.
Imports: brain_calls, edgecache.http, edgecache.protocol, node, receipts, receiving, store.
"""
