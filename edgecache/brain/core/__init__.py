"""Values, errors, background work.

Door: background, blocks, caches, creator, errors, loop_steps, paging, share_key, values.
Imports: edgecache.http, edgecache.protocol, edgecache.runtime.
"""
