"""Usage lines from the brain, their price, the operators' share.

Door: charges_and_shares, rates, usage_import.
Stands on: consumer_credits, edgecache, errors, ledger, models, money.
"""
