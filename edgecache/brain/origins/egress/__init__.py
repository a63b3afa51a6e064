"""Egress: which addresses origins may have, because tenants choose them."""
