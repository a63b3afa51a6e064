"""The version of each key, and who has its bytes; purges, buckets, hosts.

Door: buckets, commits, hosts, index, purges, tenants, versions.
Imports: common, core, db, edgecache.protocol, edgecache.runtime, http_caching, stores.
"""
