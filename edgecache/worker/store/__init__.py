"""Immutable files named by their hash.

Door: files, incoming, inventory, recovery, worker_store.
Stands on: edgecache.protocol, edgecache.runtime.
"""
