"""`python -m operations.embedded up` and `… exec -- COMMAND`."""

import argparse
import os
import sys
from collections.abc import Sequence

from common.machine.errors import StartError
from common.machine.terminal import warn
from operations.embedded import up
from operations.embedded.throwaway import CANNOT_RUN, run_beside_clusters

EXEC_HELP = """\
Start two throw-away PostgreSQL clusters, run COMMAND with their addresses in DATABASE_URL and
ZSQL_CLUSTER_URL (and with fresh secrets and an empty ZDATA_DIR), stop and delete the clusters,
and exit with COMMAND's status. Signals are passed on to COMMAND. The clusters neither sync
their commits nor vacuum, which tests do not need; with --durable they do, for measurements.

  python -m operations.embedded exec -- pytest
  python -m operations.embedded exec -- sh -c 'psql "$DATABASE_URL"'
  python -m operations.embedded exec --durable -- python -m benchmarks
"""


def main(argv: Sequence[str]) -> int:
    """Run one of the two commands; the exit status."""
    arguments = _parser().parse_args(argv)
    if arguments.name == "up":
        return up.main()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        warn("exec: name a COMMAND after `--`; see --help.")
        return CANNOT_RUN
    try:
        return run_beside_clusters(command, os.environ, durable=arguments.durable)
    except StartError as error:
        warn(str(error))
        return 1
    except KeyboardInterrupt:
        return up.INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m operations.embedded",
        description="PostgreSQL and the platform's processes on one machine.",
    )
    commands = parser.add_subparsers(dest="name", required=True, metavar="{up,exec}")
    raw = argparse.RawDescriptionHelpFormatter
    text = "run the platform until Ctrl-C"
    commands.add_parser("up", help=text, description=up.HELP, formatter_class=raw)
    text = "run a command beside throw-away clusters"
    exec_parser = commands.add_parser("exec", help=text, description=EXEC_HELP, formatter_class=raw)
    exec_parser.add_argument(
        "--durable", action="store_true", help="sync commits and vacuum, as in production"
    )
    exec_parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND …")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
