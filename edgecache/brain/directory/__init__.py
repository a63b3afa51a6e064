"""The version of each key, and who has its bytes; purges, buckets, hosts.

Door: buckets, commits, hosts, index, pasted_names, purges, tenants, versions.
Imports: aws, common, core, db, edgecache.http, edgecache.protocol, edgecache.runtime, http_caching,
stores.
"""
