"""Money to node operators: requests, methods, reconciliation.

Door: connections, manual, methods, providers, reconciliation, requests.
Imports: accounts, common, errors, ledger, models, money, outbox.
"""
