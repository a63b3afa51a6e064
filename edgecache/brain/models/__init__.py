"""The brain's schema. Its code reads and writes these tables with SQL (``brain.database``).

Ids of organizations and environments are plain numbers, because the brain may have a database of
its own. Only ``edgecache.brain`` reads these tables.

A foreign key has no index if another index begins with its column: a write would update both, and a
plan that takes the shorter one reads a whole bucket for one key.
"""

from edgecache.brain.models import audits, buckets, nodes, objects, stores, usage

__all__ = ["audits", "buckets", "nodes", "objects", "stores", "usage"]
