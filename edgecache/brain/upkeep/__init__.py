"""Garbage collection, eviction, hourly work.

Door: garbage_collection, hourly.
Imports: audits, core, db, directory, disk, edgecache.protocol, metering, nodes, objects, stores.
"""
