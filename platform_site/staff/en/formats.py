"""Times in the admin's lists: of one length, in order as text, and with their zone."""

from typing import Final

DATETIME_FORMAT: Final = "Y-m-d H:i:s T"
DATE_FORMAT: Final = "Y-m-d"
