"""``manage.py doctor``: check everything that the platform needs, and advise what to do."""
