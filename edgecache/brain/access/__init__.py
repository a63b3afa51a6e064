"""Access keys, the platform's own keys, presigned URLs, signed links.

Door: access_keys, platform_keys, presigned_urls, signed_links.
Imports: aws, common, core, db, edgecache.runtime, http_caching.
"""
