"""gunicorn with connections shared evenly, and few threads that compute at a time."""
