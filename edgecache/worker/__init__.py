"""A cache worker: its command and its process, without Django.

Imports: common, http, runtime.
"""
