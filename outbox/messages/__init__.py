"""Mails and text messages.

Door: development, maintenance, queue, sending, templates.
Imports: common, models.
"""
