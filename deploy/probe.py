"""``python deploy/probe.py URL``: exit 0 if a process of this container answers 200, else 1.

The image has no curl. A certificate is not verified: the process is asked by its loopback address.
"""

import ssl
import sys
from typing import Final
from urllib.request import urlopen

TIMEOUT_S: Final = 4.0


def main(url: str) -> int:
    """Return the exit status."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urlopen(url, timeout=TIMEOUT_S, context=context) as answer:  # noqa: S310 - ours
            return 0 if answer.status == 200 else 1
    except OSError as error:
        sys.stderr.write(f"{url}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
