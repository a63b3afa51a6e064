"""Garbage collection, eviction, hourly work.

Door: garbage_collection, hourly.
Stands on: audits, core, db, directory, disk, edgecache.protocol, metering, nodes, objects, stores.
"""
