"""What leaves the platform: its endpoints, its tasks.

Door: metrics, urls.
Stands on: audit, common.
"""
