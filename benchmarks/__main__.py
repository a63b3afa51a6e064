"""``make bench``: compare Zonal with baselines in one run; prints ratios, not times."""

import argparse
import os

from benchmarks.prepare import prepare

USUAL = ("request_cost", "sql_rows", "sql_streams", "first_sql", "neighbours", "crowd")


def main() -> None:
    """Run the named benchmarks, or all but the comparison of web server settings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = (
        *USUAL,
        "second_factor",
        "web_server",
        "cache_worker",
        "cache_gateway",
        "postgres_meta",
        "soak",
    )
    parser.add_argument("names", nargs="*", choices=[*names, []], help=f"Default: {USUAL}.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="Length of a round.")
    options = parser.parse_args()
    os.environ["ZALLOWED_HOSTS"] = "localhost,127.0.0.1"
    identity = prepare()
    from benchmarks import (  # noqa: PLC0415 - after django.setup()
        cache_gateway,
        cache_worker,
        crowd,
        first_sql,
        neighbours,
        postgres_meta,
        request_cost,
        second_factor,
        soak,
        sql_rows,
        sql_streams,
        web_server,
    )

    modules = {
        "request_cost": request_cost,
        "sql_rows": sql_rows,
        "sql_streams": sql_streams,
        "first_sql": first_sql,
        "neighbours": neighbours,
        "crowd": crowd,
        "second_factor": second_factor,
        "web_server": web_server,
        "cache_worker": cache_worker,
        "cache_gateway": cache_gateway,
        "postgres_meta": postgres_meta,
        "soak": soak,
    }
    for name in options.names or USUAL:
        print(f"{name}: {options.rounds} rounds of {options.seconds} s, medians")
        modules[name].measure(identity, rounds=options.rounds, seconds=options.seconds)


if __name__ == "__main__":
    main()
