"""The workers' calls.

Door: app.
Stands on: conf, core, db, edgecache.http, edgecache.protocol, json_api, metering, nodes.
"""
