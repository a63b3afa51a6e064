"""Drivers of external origins; guard checks addresses.

Door: catalog, connections, driver, http, open_origins, s3.
Imports: aws, common, core, db, disk, edgecache.http, edgecache.protocol, http_caching.
"""
