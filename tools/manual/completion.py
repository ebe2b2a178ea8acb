"""Completion of options for bash, from the parsers of all tools and their targets."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ai8xtools.commands.targets import targets
from tools.manual.options import parsers

_HEAD = """\
# Completion of options for bash: `source scripts/completion.bash`.
# Written by tools/make_docs.py from the code; do not edit it.

_ai8x() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
    local tool="${1##*/}" device="" options="" devices="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ "${COMP_WORDS[i]}" == --device ]] && device="${COMP_WORDS[i+1]}"
        [[ "${COMP_WORDS[i]}" == --device && "$device" == = ]] && device="${COMP_WORDS[i+2]}"
    done
    [[ "$before" == = ]] && before="${COMP_WORDS[COMP_CWORD-2]}"
    [[ "$word" == = ]] && word=""
    case "${tool%.py} $(tr '[:lower:]' '[:upper:]' <<< "$device")" in
"""
_TAIL = """\
    esac
    [[ "$before" == --device ]] && options="$devices"
    [[ "$word" == -* || "$before" == --device ]] || return  # files
    COMPREPLY=($(compgen -W "$options" -- "$word"))
}

complete -o default -F _ai8x"""


def completion_script() -> str:
    """Return the text of scripts/completion.bash."""
    tools = list(dict.fromkeys(name.partition(" ")[0].removesuffix(".py") for name in parsers()))
    commands = " ".join(f"{tool}.py ./{tool}.py" for tool in tools)
    return _HEAD + "".join(_cases()) + f"{_TAIL} {commands}\n"


def _cases() -> Iterator[str]:
    """Yield what each tool has for each target, its first one last."""
    for name, make in reversed(parsers().items()):
        tool, _, names = name.partition(" --device ")
        stem = tool.removesuffix(".py")
        patterns = [f'"{stem} {one}"' for one in names.split(" or ")] if names else [f'"{stem} "*']
        devices = " ".join(name for target in targets(tool) for name in target.names)
        yield f"        {' | '.join(patterns)})\n"
        yield f'            options="{" ".join(options_of(make()))}"\n'
        yield f'            devices="{devices}" ;;\n'


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the long options that --help shows, in the order of the alphabet."""
    shown = (action for action in parser._actions if action.help != argparse.SUPPRESS)
    return sorted({o for action in shown for o in action.option_strings if o.startswith("--")})
