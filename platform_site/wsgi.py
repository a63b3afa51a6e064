"""The WSGI application that gunicorn serves."""

import gc
import os

from django.core.cache import close_caches
from django.core.handlers.base import reset_urlconf
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import reset_queries
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")

application = get_wsgi_application()

from platform_site import startup  # noqa: E402 - needs Django

startup.log_start("web")
startup.refuse_unsafe()
startup.check_release()

# Disconnects Django's signal handlers that are not needed, because each of them costs time in every
# request: without DEBUG no queries are logged, no cache is configured, and the next request sets
# the URLconf again.
request_started.disconnect(reset_queries)
request_finished.disconnect(close_caches)
request_finished.disconnect(reset_urlconf)
# Load all views now, not at the first request.
get_resolver()._populate()  # noqa: SLF001 - the one call that walks all of the URLconf
# Loaded modules live as long as the process. Frozen objects are not scanned by the garbage
# collector, which took a quarter of the time of a short request.
gc.collect()
gc.freeze()
