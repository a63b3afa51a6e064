"""``make bench``: Zonal beside its yardsticks in one run; ratios, never absolute times."""

import argparse
import os

from benchmarks.prepare import prepare


def main() -> None:
    """Run the benchmarks that are named, or all but the slow choice of a web server."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = ("request_cost", "web_server", "cache_worker")
    parser.add_argument("names", nargs="*", choices=[*names, []], help="Default: request_cost.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="Length of a round.")
    options = parser.parse_args()
    os.environ["ZALLOWED_HOSTS"] = "localhost,127.0.0.1"
    identity = prepare()
    from benchmarks import cache_worker, request_cost, web_server  # noqa: PLC0415 - after django.setup()

    modules = {
        "request_cost": request_cost,
        "web_server": web_server,
        "cache_worker": cache_worker,
    }
    for name in options.names or ["request_cost"]:
        print(f"{name}: {options.rounds} rounds of {options.seconds} s, medians")
        modules[name].measure(identity, rounds=options.rounds, seconds=options.seconds)


if __name__ == "__main__":
    main()
