"""Shares of organizations, threads, caches, limits.

Door: fair_cache, futures, hot_cache, resource_limits, shares, threads, turns, verified_files.
"""
