"""Money to node operators: requests, methods, reconciliation.

Door: connections, manual, methods, providers, reconciliation, requests.
Stands on: accounts, common, errors, ledger, models, money, outbox.
"""
