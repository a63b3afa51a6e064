"""Webhooks: what happens in an organization, sent to its own servers.

Part of accounts, because members and sign-ins have events, and all higher layers, which have events
too, may import it.
"""
