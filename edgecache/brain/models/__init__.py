"""Tables of the brain.

Door: buckets, nodes.
Imports: common, edgecache.protocol.
"""

from edgecache.brain.models import audits, buckets, nodes, objects, stores, usage

__all__ = ["audits", "buckets", "nodes", "objects", "stores", "usage"]
