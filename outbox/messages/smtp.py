"""The SMTP backend, with a longer wait for the reply to a transmitted mail."""

import smtplib
from typing import Any, Final

from django.core.mail.backends import smtp

# A relay that scans a mail before it accepts it takes longer than for all other replies (RFC 5321
# §4.5.3.2.6 has ten minutes). A client that hangs up before sends the mail again, and it arrives
# twice. Within the lease of a delivery (maintenance.LEASE).
ACCEPT_TIMEOUT_S: Final = 60


class _Connection(smtplib.SMTP):
    def data(self, msg: Any) -> Any:
        if self.sock is not None:
            self.sock.settimeout(ACCEPT_TIMEOUT_S)
        answer = super().data(msg)
        if self.sock is not None:
            self.sock.settimeout(self.timeout)
        return answer


class _TLSConnection(_Connection, smtplib.SMTP_SSL):
    pass


class EmailBackend(smtp.EmailBackend):
    """Django's, whose connections wait for the acceptance of a mail."""

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        """Return the class of connections."""
        return _TLSConnection if self.use_ssl else _Connection
