"""Reads and writes of objects through the cache.

Door: builtin_origin, cacheability, leases, negative_cache, object_cache, object_versions,
open_object, origin_writes, shared_fetch, upload_rows, version_listing.
Imports: common, core, db, directory, disk, edgecache.http, edgecache.protocol, edgecache.runtime,
http_caching, origins, stores.
"""
