"""The WSGI application that gunicorn serves."""

import os
import sys

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")

# A thread that has its answer from the database waits for the interpreter lock up to this long
# while another one computes: the default 5 ms are many requests' worth (docs/performance.md).
sys.setswitchinterval(0.0005)

application = get_wsgi_application()
