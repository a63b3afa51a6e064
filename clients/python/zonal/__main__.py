"""`python -m zonal` is the command `zonal`."""

import sys

from zonal.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
