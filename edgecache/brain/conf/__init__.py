"""Settings of a brain.

Door: brain, operators, stores.
Stands on: common, edgecache.http, edgecache.protocol, edgecache.runtime.
"""
