"""Access keys, the platform's own keys, presigned URLs.

Door: access_keys, platform_keys, presigned_urls.
Imports: aws, common, core, db, edgecache.runtime.
"""
