"""Settings of a brain.

Door: brain, operators, stores.
Imports: common, edgecache.http, edgecache.protocol.
"""
