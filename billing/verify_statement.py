"""Recompute an operator's statement: ``python -m billing.verify_statement FILE [--rates FILE]``.

Only the standard library, and no other module of Zonal: copy this file and run it anywhere. It
checks every line of the CSV of ``GET /v1/cache/statement`` against the public rates:

    charge_ucr = units × rate_ucr
    paid_ucr   ≤ charge_ucr                      (what the consumer has paid so far)
    amount_ucr = paid_ucr × share_ppm / 1,000,000, rounded down

The rates file is JSON, ``{"hit": [["2026-01-01T00:00:00+00:00", 100], …], "egress": …}``; without
it the published rates are used. Exit status: 0 if every line is right, 1 if not.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TextIO

PPM = 1_000_000
UCR_PER_CENT = 10**9
Rates = Mapping[str, Sequence[Sequence[str | int]]]

START = "2026-01-01T00:00:00+00:00"
PUBLISHED: Rates = {"hit": [[START, 100]], "egress": [[START, 9]]}


def rate_of(rates: Rates, kind: str, used_at: datetime) -> int:
    """Return the rate of a kind at a time: the last one that has begun."""
    begun = [
        (datetime.fromisoformat(str(begins_at)), int(rate))
        for begins_at, rate in rates[kind]
        if datetime.fromisoformat(str(begins_at)) <= used_at
    ]
    return max(begun)[1]


def faults(row: Mapping[str, str], rates: Rates) -> Iterator[str]:
    """Yield the errors in a line."""
    units, rate, charge = int(row["units"]), int(row["rate_ucr"]), int(row["charge_ucr"])
    paid, share, amount = int(row["paid_ucr"]), int(row["share_ppm"]), int(row["amount_ucr"])
    public = rate_of(rates, row["kind"], datetime.fromisoformat(row["used_at"]))
    if rate != public:
        yield f"the rate is {rate}, the public one {public}"
    if charge != units * rate:
        yield f"the charge is {charge}, not {units * rate}"
    if not 0 <= paid <= charge:
        yield f"{paid} µcr were paid for a charge of {charge}"
    if amount != paid * share // PPM:
        yield f"the amount is {amount}, not {paid * share // PPM}"


def check(lines: TextIO, rates: Rates) -> int:
    """Print the faults and the total of a statement; return the number of faults."""
    seen: set[str] = set()
    total = count = wrong = 0
    for row in csv.DictReader(lines):
        count += 1
        found = list(faults(row, rates))
        if row["usage_id"] in seen:
            found.append("the line is there twice")
        seen.add(row["usage_id"])
        for fault in found:
            print(f"{row['usage_id']}: {fault}")
        wrong += bool(found)
        total += int(row["amount_ucr"])
    print(f"{count} lines, {wrong} wrong; {total} µcr, {total // UCR_PER_CENT} whole cents")
    return wrong


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m billing.verify_statement",
        description="Recompute an operator's statement, line by line, from the public rates. A "
        "wrong line is exit status 1.",
    )
    made.add_argument(
        "statement", type=Path, metavar="FILE", help="the CSV of GET /v1/cache/statement"
    )
    made.add_argument(
        "--rates", type=Path, metavar="FILE", help="rates as JSON; the published ones without it"
    )
    return made


def main() -> int:
    """Check the file that the command line names."""
    options = parser().parse_args()
    rates = json.loads(options.rates.read_text()) if options.rates else PUBLISHED
    with options.statement.open(newline="") as lines:
        return 1 if check(lines, rates) else 0


if __name__ == "__main__":
    sys.exit(main())
