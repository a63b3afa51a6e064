"""Transactions that stay open over several requests.

The web process in which one begins owns its connection; a row in the control database says which
process that is, and any other one forwards to it (channel.py). Row and owner share the work so that
nothing is reported wrongly:

- ``held.py`` is the owner's side: the connection, the numbers of the statements, the time limits.
- ``transactions.py`` is the request's side: whose the transaction is, the row, the commit.
"""
