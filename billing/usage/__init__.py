"""Usage lines from the brain: what they cost, and the share of each operator.

Door: charges_and_shares, rates, usage_import.
Stands on: consumer_credits, edgecache, errors, ledger, models, money.
"""
