"""The data directory, where bytes become durable: files, the journal, the budget.

Door: buffers, data_directory, digests, durable_bytes, removal, segments, syncing.
Imports: core, db, edgecache.runtime.
"""
