"""Stripe: connected accounts, checkout, events.

Imports: common, conf, errors, models, payouts, topups.
"""
