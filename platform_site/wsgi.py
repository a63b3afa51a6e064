"""The WSGI application that gunicorn serves."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")

application = get_wsgi_application()

# Load all views now, not at the first request.
get_resolver()._populate()  # noqa: SLF001 - the one call that walks all of the URLconf
# Loaded modules live as long as the process: frozen, the garbage collector does not scan them
# again and again, which took a quarter of the time of a short request.
gc.collect()
gc.freeze()
