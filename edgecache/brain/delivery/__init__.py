"""Carries a read out: from workers, from the disk, from the origin.

Door: compression, hot_objects, local_files, plan, response_cache, streaming, worker_reads.
Imports: core, db, directory, edgecache.http, edgecache.runtime, metering, nodes, objects, stores.
"""
