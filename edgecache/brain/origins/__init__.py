"""External origins: one driver a kind, all behind the egress guard."""
