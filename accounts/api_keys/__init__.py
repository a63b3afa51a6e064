"""API keys: long-lived credentials of programs."""
