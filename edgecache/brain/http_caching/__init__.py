"""The rules of RFC 9111, and keys of URLs.

Door: cache_keys, caching_rules.
Imports: edgecache.http.
"""
