"""Garbage collection, eviction, hourly work.

Door: garbage_collection, hourly, lifecycle, lifecycle_rules.
Imports: audits, core, db, directory, disk, edgecache.protocol, edgecache.runtime, metering, nodes,
objects, stores.
"""
