"""The ASGI application, for ASGI servers; gunicorn serves wsgi.py."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")

application = get_asgi_application()

from platform_site import startup  # noqa: E402 - needs Django

startup.refuse_unsafe()
