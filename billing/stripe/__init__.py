"""Stripe: connected accounts, checkout, events.

Stands on: common, conf, errors, models, payouts, topups.
"""
