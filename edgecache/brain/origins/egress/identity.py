"""The brain has no cloud identity: origins are accessed with their owners' credentials."""

import os
from typing import Final

AMBIENT: Final = ("AWS_", "AZURE_", "GOOGLE_", "GCLOUD_", "MSI_", "IDENTITY_")


def forget_ambient_identity() -> None:
    """Remove the clouds' variables from this process's environment.

    obstore adds them to its configuration by itself: the machine's key would
    be used for a tenant that gave none, or sent to an endpoint that a tenant chose.
    """
    for name in tuple(os.environ):
        if name.upper().startswith(AMBIENT):
            del os.environ[name]
