"""Credits that organizations buy.

Door: providers, requests.
Stands on: common, consumer_credits, errors, ledger, models, money, outbox, payouts.
"""
