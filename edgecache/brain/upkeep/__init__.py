"""Garbage collection, eviction, hourly work.

Door: access_logs, garbage_collection, hourly, lifecycle, lifecycle_rules.
Imports: audits, common, core, db, directory, disk, edgecache.protocol, edgecache.runtime, metering,
nodes, objects, stores.
"""
