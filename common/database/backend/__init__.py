"""Django's PostgreSQL (``ENGINE``), without connections that ended or that refused a write."""
