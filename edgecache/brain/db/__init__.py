"""PostgreSQL, and the coherence of several brains over it.

Door: coherence, coherent_cache, database, environment_limits, grouped_calls, joined_reads.
Imports: common, core, edgecache.runtime.
"""
