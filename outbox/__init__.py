"""What leaves the platform: its endpoints, its tasks.

Door: metrics, tasks, urls.
Imports: audit, common.
"""
