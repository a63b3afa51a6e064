"""The processes of a brain: ports, start, takeover, end.

Door: listeners, one_process, parent.
Imports: common, conf, core, edgecache.http, edgecache.runtime, siblings.
"""
