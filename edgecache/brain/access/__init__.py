"""Access keys, the platform's own keys, presigned URLs.

Door: access_keys, platform_keys, presigned_urls.
Stands on: aws, common, core, db.
"""
