"""Pauses and locks of threads; zonal/_async has the same of asyncio."""

import threading
import time

sleep = time.sleep
Lock = threading.Lock
