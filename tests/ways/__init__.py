"""The ways in, each with a driver: what tests/rules/test_ways_in.py drives to its end.

A new way in is a member of ``accounts.signin.signin.Way`` and a module here that names its driver
``DRIVER`` (see ``tests.ways.driver``). The matrix finds it, and fails without it.
"""
