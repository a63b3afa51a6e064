"""What the processes of one brain share.

Door: mailboxes, process_context, reports, shared_memory.
Imports: core, db, disk, edgecache.http, metering.
"""
