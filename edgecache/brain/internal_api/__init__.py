"""The platform's calls.

Door: app.
Imports: access, audits, common, conf, core, db, directory, disk, edgecache.protocol, http_caching,
json_api, metering, nodes, objects, origins, stores.
"""
