"""The sign-in methods, each with a driver that tests/rules/test_sign_in_methods.py runs to its end.

A new one is a member of ``accounts.signin.signin.SignInMethod`` and a module here that names its
driver ``DRIVER`` (see ``tests.sign_in_methods.driver``). The matrix finds it, and fails without it.
"""
