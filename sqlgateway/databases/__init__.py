"""Limits of organizations: what they are, and how a quota of disk is enforced.

organization_limits.py: the limits that staff may set for one organization.
quotas.py: the limits in effect; measures databases and stops their growth.
request_limits.py: the limits in effect for one request.
"""
