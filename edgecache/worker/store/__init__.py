"""Immutable files named by their hash.

Door: files, incoming, inventory, recovery, worker_store.
Imports: edgecache.protocol, edgecache.runtime.
"""
