"""A cache worker: its command and its process, without Django.

Imports: http, protocol, runtime.
"""
