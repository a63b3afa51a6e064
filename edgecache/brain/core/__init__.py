"""Values, errors, background work.

Door: background, blocks, creator, errors, loop_steps, paging, share_key, shared_calls, values.
Imports: edgecache.http, edgecache.protocol, edgecache.runtime.
"""
