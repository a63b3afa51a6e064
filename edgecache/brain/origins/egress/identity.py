"""The brain has no identity of its own with any cloud: origins are asked with their owners'."""

import os
from typing import Final

AMBIENT: Final = ("AWS_", "AZURE_", "GOOGLE_", "GCLOUD_", "MSI_", "IDENTITY_")


def forget_ambient_identity() -> None:
    """Take the clouds' variables out of this process's environment.

    obstore completes what it is told with them, without being asked: a key of the machine's would
    be used for a tenant that gave none, or sent to an endpoint that a tenant chose.
    """
    for name in tuple(os.environ):
        if name.upper().startswith(AMBIENT):
            del os.environ[name]
