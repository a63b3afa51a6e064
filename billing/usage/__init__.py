"""Usage lines from the brain, their price, the operators' share.

Door: rates, settlement, usage_import.
Stands on: consumer_credits, edgecache, errors, ledger, models, money.
"""
