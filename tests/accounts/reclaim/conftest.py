"""Google, by which the owner of a mailbox may come."""

from tests.oauth.conftest import google, platform

__all__ = ["google", "platform"]
