"""The WSGI application that gunicorn serves."""

import gc
import os

from django.core.cache import close_caches
from django.core.handlers.base import reset_urlconf
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, reset_queries
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")

application = get_wsgi_application()

# No query is logged without DEBUG, no cache is configured, connections are looked at when a request
# ends, and the next request sets the URLconf anew: in every request each of these took longer than
# it reads.
request_started.disconnect(reset_queries)
request_started.disconnect(close_old_connections)
request_finished.disconnect(close_caches)
request_finished.disconnect(reset_urlconf)
# Load all views now, not at the first request.
get_resolver()._populate()  # noqa: SLF001 - the one call that walks all of the URLconf
# Loaded modules live as long as the process: frozen, the garbage collector does not scan them
# again and again, which took a quarter of the time of a short request.
gc.collect()
gc.freeze()
