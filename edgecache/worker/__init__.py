"""A cache worker: its command and its process, without Django.

Stands on: http, protocol.
"""
