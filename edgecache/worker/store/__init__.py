"""Immutable files named by their hash.

Door: files, incoming, inventory, recovery, store.
Stands on: edgecache.protocol, edgecache.runtime.
"""
