"""PostgreSQL, and the coherence of several brains over it.

Door: coherence, coherent_cache, database, environment_limits.
Imports: common, core, edgecache.runtime.
"""
