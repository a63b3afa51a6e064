"""Scripts that complete the command in a shell, from its parser."""

import argparse
from collections.abc import Iterator

from zonal.cli.terminal import write as write_line

# For each command that was typed: its words. Options and their values are skipped to find it.
SCRIPT = """\
_zonal() {{
  local path="" word index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="${{COMP_WORDS[index]}}"
    case " $(_zonal_words "$path") " in
      *" $word "*) [[ $word == -* ]] || path="$path/$word" ;;
    esac
  done
  COMPREPLY=($(compgen -W "$(_zonal_words "$path")" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
_zonal_words() {{
  case "$1" in
{cases}
  esac
}}
complete -o default -F _zonal zonal"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


# fish completes a command by conditions on the words before the cursor.
FISH = """\
function __zonal_at
  set -l path
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; or set -a path $word
  end
  test "$path" = "$argv"
end
{lines}"""


def write(parser: argparse.ArgumentParser, shell: str) -> None:
    """Print the script for a shell."""
    if shell == "fish":
        write_line(FISH.format(lines="\n".join(_fish(parser))))
        return
    cases = "\n".join(
        f'    "{path}") echo "{" ".join(words)}" ;;' for path, words in _commands(parser, "")
    )
    write_line(f"{ZSH if shell == 'zsh' else ''}{SCRIPT.format(cases=cases)}")


def _fish(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Return a line for each command's words; files are completed after the last command."""
    for path, words in _commands(parser, ""):
        place = " ".join(["__zonal_at", *path.split("/")[1:]])
        plain = [word for word in words if not word.startswith("--")]
        if plain:
            yield f"complete -c zonal -f -n '{place}' -a '{' '.join(plain)}'"
        for word in words:
            if word.startswith("--"):
                yield f"complete -c zonal -n '{place}' -l {word[2:]}"
        if not plain:
            yield f"complete -c zonal -F -n '{place}'"


def _commands(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, list[str]]]:
    """Return each command's path and the words that may follow it."""
    words = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        words += [option for option in action.option_strings if option.startswith("--")]
        if isinstance(action.choices, dict):
            words += list(action.choices)
            for name, sub in action.choices.items():
                yield from _commands(sub, f"{path}/{name}")
        elif action.choices and not action.option_strings:
            words += [str(choice) for choice in action.choices]
    yield path, words
