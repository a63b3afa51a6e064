"""The ways in, each with a driver: what tests/rules/test_sign_in_methods.py drives to its end.

A new way in is a member of ``accounts.signin.signin.Way`` and a module here that names its driver
``DRIVER`` (see ``tests.sign_in_methods.driver``). The matrix finds it, and fails without it.
"""
