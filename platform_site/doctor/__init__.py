"""``manage.py doctor``: look at everything that the platform needs, and say what to do."""
