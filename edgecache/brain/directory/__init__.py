"""Versions of keys and who has their bytes; purges, buckets, hosts.

Door: buckets, commits, hosts, index, purges, tenants, versions.
Stands on: common, core, db, disk, http_caching, stores.
"""
