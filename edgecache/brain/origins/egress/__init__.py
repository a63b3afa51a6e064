"""The way out: connections to origins, whose addresses tenants choose."""
