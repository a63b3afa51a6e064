"""A command's arguments, as the reference has them."""

from argparse import ArgumentParser

from operations import documents


def made() -> ArgumentParser:
    parser = ArgumentParser(prog="zonal move")
    parser.add_argument("-v", "--verbosity", type=int, help="Django has it in each command.")
    parser.add_argument("--to", required=True, metavar="PLACE", help="Where it goes.")
    parser.add_argument("--limit", type=int, default=7, help="At most; %(default)s without it.")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--all", action="store_true", help="Everything.")
    how.add_argument("--state", choices=("open", "closed"), help="One | the other.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    parser.add_argument("what", help="A\n  thing.")
    parser.add_argument("more", nargs="*", metavar="THING", help="Others.")
    return parser


def test_the_way_to_call_a_command_says_what_has_to_be_there() -> None:
    assert documents.synopsis(made()) == (
        "zonal move --to PLACE [--limit LIMIT] [--json] (--all | --state {open,closed}) "
        "what [THING …]"
    )


def test_each_argument_of_a_commands_own_has_a_row() -> None:
    assert documents.arguments_table(made()).splitlines()[2:] == [
        "| `what` | A thing. |",
        "| `[THING …]` | Others. |",
        "| `--to PLACE` | Where it goes. |",
        "| `--limit LIMIT` | At most; 7 without it. |",
        "| `--all` | Everything. |",
        "| `--state {open,closed}` | One \\| the other. |",
    ]


def test_a_command_without_arguments_has_no_table() -> None:
    assert documents.arguments_table(ArgumentParser(prog="zonal look")) == ""


def test_commands_are_found_in_their_groups() -> None:
    top = ArgumentParser(prog="zonal")
    commands = top.add_subparsers()
    commands.add_parser("look", help="look at it")
    commands.add_parser("env", help="a group").add_subparsers().add_parser("list", help="show all")
    found = [(each.prog, text) for each, text in documents.subcommands(top)]
    assert found == [("zonal look", "look at it"), ("zonal env list", "show all")]
