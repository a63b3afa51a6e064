"""gunicorn workers with balanced connections, and a limit on computing threads."""
