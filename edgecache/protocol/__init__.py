"""Messages and tickets between platform, brain and workers.

Door: batches, credentials, fields, heartbeats, inventories, jobs, names, ranges, receipts,
resources, tickets.
"""
