"""Public buckets as an HTTP cache.

Door: app.
Imports: access, common, core, delivery, directory, disk, edgecache.http, edgecache.protocol,
edgecache.runtime, http_caching, metering, nodes, objects, origins.
"""
