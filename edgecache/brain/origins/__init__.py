"""External origins: one driver for each kind, all behind the egress guard."""
