"""JSON over HTTP for the two internal APIs.

Door: app, errors.
Stands on: common, core, db, edgecache.http, edgecache.protocol.
"""
