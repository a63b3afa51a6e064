"""The object API.

Door: access_log_lines, api, dependencies.
Imports: access, aws, common, conf, core, db, delivery, directory, disk, edgecache.http,
edgecache.protocol, edgecache.runtime, metering, nodes, objects, origins, stores, upkeep.
"""
