"""Credits that organizations buy.

Door: providers, requests.
Imports: common, consumer_credits, errors, ledger, models, money, outbox, payouts.
"""
