"""The workers' calls.

Door: app.
Imports: conf, core, db, edgecache.http, edgecache.protocol, json_api, metering, nodes, stores.
"""
