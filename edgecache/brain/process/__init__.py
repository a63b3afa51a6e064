"""The processes of a brain: ports, start, takeover, end.

Door: listeners, one_process, parent.
Stands on: common, conf, core, edgecache.http, edgecache.runtime, siblings.
"""
