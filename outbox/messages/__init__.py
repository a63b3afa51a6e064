"""Mails and text messages.

Door: development, maintenance, queue, sending, templates.
Stands on: common, models.
"""
