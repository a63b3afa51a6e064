"""JSON over HTTP for the two internal APIs.

Door: app, errors.
Imports: common, core, edgecache.http, edgecache.protocol, stores.
"""
