"""The rules of RFC 9111, and keys of URLs.

Door: cache_keys, cache_tags, caching_rules.
Imports: core, edgecache.http.
"""
