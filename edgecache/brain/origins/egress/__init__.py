"""Egress: guarded connections to origins, because tenants choose their addresses."""
