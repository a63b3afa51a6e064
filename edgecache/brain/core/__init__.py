"""Values, errors, background work.

Door: background, blocks, creator, errors, loop_steps, paging, share_key, values.
Imports: edgecache.http, edgecache.protocol, edgecache.runtime.
"""
