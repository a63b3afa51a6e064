"""Shares of organizations, threads, caches, limits.

Door: bounded_cache, fair_shares, futures, hot_cache, listening, resource_limits, threads, turns,
verified_files.
"""
