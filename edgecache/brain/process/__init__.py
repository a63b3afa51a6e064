"""A brain's process: ports, start, end.

Door: listeners, serving, sockets.
Imports: common, conf, core, edgecache.http, edgecache.runtime.
"""
