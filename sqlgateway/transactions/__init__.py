"""Transactions over several requests.

The transaction's connection is in one process, its owner. Any process may receive a request for it;
a process that is not the owner forwards the request to it (channel.py).

- ``open_transactions.py``, in the owner: connections, numbers of statements, time limits.
- ``transactions.py``, in the process that has the request: ownership, the row, the commit.

Both check what they do against the transaction's row, so that no outcome is reported wrongly.
"""
