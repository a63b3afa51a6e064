"""The object API.

Door: api, dependencies.
Stands on: access, aws, common, conf, core, db, delivery, directory, disk, edgecache.http,
edgecache.protocol, edgecache.runtime, metering, nodes, objects, stores.
"""
