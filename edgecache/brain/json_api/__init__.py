"""JSON over HTTP for the two internal APIs.

Door: app, errors.
Imports: common, core, db, edgecache.http, edgecache.protocol.
"""
