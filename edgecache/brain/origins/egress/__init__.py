"""Egress: guarded connections to origins, whose addresses tenants choose."""
