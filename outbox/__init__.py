"""What leaves the platform: its endpoints, its tasks.

Door: metrics, urls.
Imports: audit, common.
"""
