"""``make bench``: compare Zonal with baselines in one run; prints ratios, not times."""

import argparse
import importlib
import os

from benchmarks.prepare import prepare, signed_in

USUAL = (
    "request_cost",
    "sql_rows",
    "sql_streams",
    "first_sql",
    "neighbours",
    "crowd",
    "cache_writes",
    "cache_gateway",
)
FOLDERS = {
    "sql": (
        "request_cost",
        "sql_rows",
        "sql_streams",
        "first_sql",
        "clone",
        "neighbours",
        "crowd",
        "postgres_meta",
    ),
    "cache": (
        "cache_writes",
        "cache_gateway",
        "cache_neighbours",
        "cache_worker",
        "cache_compression",
        "metering",
        "object_count",
    ),
    "platform": (
        "second_factor",
        "web_server",
        "billing",
        "observability",
        "python_client",
        "admin",
        "backup",
        "unit_costs",
    ),
}
MODULES = {
    name: f"benchmarks.{folder}.{name}" for folder, names in FOLDERS.items() for name in names
}


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*MODULES, []], help=f"Default: {USUAL}.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="Length of a round.")
    return parser.parse_args()


def main() -> None:
    """Run the named benchmarks, or all except the comparison of web server settings."""
    chosen = options()
    os.environ["ZALLOWED_HOSTS"] = "localhost,127.0.0.1"
    prepare()
    from common.scoping import unscoped  # noqa: PLC0415 - needs django.setup()

    with unscoped("benchmarks arrange rows"):
        identity = signed_in()
        for name in chosen.names or USUAL:
            print(f"{name}: {chosen.rounds} rounds of {chosen.seconds} s, medians")
            # They import models, which is possible only after django.setup().
            module = importlib.import_module(MODULES[name])
            module.measure(identity, rounds=chosen.rounds, seconds=chosen.seconds)


if __name__ == "__main__":
    main()
