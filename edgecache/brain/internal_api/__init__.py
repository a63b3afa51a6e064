"""The platform's calls.

Door: app.
Stands on: access, audits, common, conf, core, db, directory, disk, edgecache.protocol,
http_caching, json_api, metering, nodes, objects, origins, siblings.
"""
