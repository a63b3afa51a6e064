"""Values, errors, background work.

Door: background, blocks, caches, creator, errors, fair_share, loop_steps, paging, values.
Stands on: edgecache.http, edgecache.protocol, edgecache.runtime.
"""
