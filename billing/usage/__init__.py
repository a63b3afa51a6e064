"""Usage lines from the brain: what they cost, and the share of each operator.

Door: charges_and_shares, rates, usage_import.
Imports: consumer_credits, edgecache, errors, ledger, models, money, sqlgateway.
"""
