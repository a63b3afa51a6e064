"""Mails and text messages.

Door: development, queue, sending, templates.
Imports: common, deliveries, failures, models.
"""
