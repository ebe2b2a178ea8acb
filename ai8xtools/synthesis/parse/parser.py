"""Text to `Description`: sections, keys and values, collecting every complaint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import yaml

from ai8xtools.diagnostics import NO_EFFECTS, Diagnostic, Edit, Effects, Place, refuse_errors
from ai8xtools.synthesis.facts import Fact, blocked, effects
from ai8xtools.synthesis.parse import rules
from ai8xtools.synthesis.parse.closest import closest
from ai8xtools.synthesis.parse.described import Described, Edited, Source, at_nodes
from ai8xtools.synthesis.parse.description import (
    Description,
    Entry,
    LayerDescription,
    Problems,
    Reading,
    Section,
)
from ai8xtools.synthesis.parse.elsewhere import misplaced_or_foreign, remedy_of_comment
from ai8xtools.synthesis.parse.keys import (
    GLOBAL_KEYS,
    LAYER_KEYS,
    NESTED_KEYS,
    Key,
    without_layout,
    without_limits,
)
from ai8xtools.synthesis.parse.kinds import KindError
from ai8xtools.synthesis.parse.nodes import compose, kind_of, mapping_items, place_of, read_text

MAX_LAYERS = 1024
"""More list elements than any chip has layers: refuse before looking at each."""
_FILL_IN = re.compile(r"(?:^|\s)#\s*(FILL IN:.*)")
_NO_LAYERS = effects(blocks=Fact.LAYERS)


def parse_file(source: Source, *, placed: bool = True, limited: bool = True) -> Description:
    """Read and parse a network description as `parse` does."""
    reading = read_file(source, placed=placed, limited=limited)
    refuse_errors(reading.problems)
    return reading.description


def parse(
    text: str, file: str = "<text>", *, placed: bool = True, limited: bool = True
) -> Description:
    """Parse the text of a network description; `file` names it in messages.

    Unless it must be `placed`, keys that fix memory and processors may be missing; unless it is
    `limited`, no limits of the chips hold. Raises DiagnosticError with all its problems.
    """
    reading = read(text, file, placed=placed, limited=limited)
    refuse_errors(reading.problems)
    return reading.description


def read_file(source: Source, *, placed: bool = True, limited: bool = True) -> Reading:
    """Read a network description, in a file or made from a model, as `read` does."""
    if isinstance(source, Described):
        reading = read(source.text, source.model, placed=placed, limited=limited)
        return at_nodes(reading, source)
    if isinstance(source, Edited):
        return read(source.text, source.file, placed=placed, limited=limited)
    return read(read_text(source), source, placed=placed, limited=limited)


def read(text: str, file: str = "<text>", *, placed: bool = True, limited: bool = True) -> Reading:
    """Read what can be used of a description, with every complaint about it.

    Keys that cannot be used are left out; a misspelled key counts as the one that was meant.
    Raises DiagnosticError for a text that is no mapping of plain data.
    """
    root = compose(text, file)
    placed = placed and _fixes_places(root)
    reader = _Reader(file, placed, limited)
    globals_, others = reader.section(root, GLOBAL_KEYS, ("layers", *NESTED_KEYS), "")
    entries = dict(globals_.entries)
    for name, keys in NESTED_KEYS.items():
        if name in others:
            sections = tuple(
                reader.section(node, reader.allowed(keys), (), f"{name}: ")[0]
                for node in reader.mappings(others[name], name)
            )
            entries[name] = Entry(sections, place_of(others[name], file))
    pairs: list[tuple[LayerDescription, Problems]] = []
    if "layers" not in others:
        reader.problem("E108", "the key 'layers' is missing", place_of(root, file), "Add it.")
    else:
        nodes = reader.mappings(others["layers"], "layers")
        pairs = reader.in_sequence(
            [reader.layer(node, f"layer {i}: ") for i, node in enumerate(nodes)]
        )
    layers = tuple(layer for layer, _ in pairs)
    complete = [layer for layer, problems in pairs if Fact.SIZES not in blocked(problems)]
    faulty = {id(layer) for layer, problems in pairs if problems}
    warnings = tuple(rules.warnings(complete, placed=placed, faulty=faulty))
    description = Description(globals_.place, entries, file, layers, warnings, placed, limited)
    broken = [tuple(rules.errors(layer, description)) for layer in layers]
    left = unfinished(text, file)
    return Reading(
        description,
        tuple(sorted((*left, *reader.problems, *chain.from_iterable(broken)), key=position)),
        tuple((*problems, *rest) for (_, problems), rest in zip(pairs, broken, strict=True)),
        reader.meant,
    )


def unfinished(text: str, file: str) -> list[Diagnostic]:
    """Complain about the places that `train.py --yaml-template` has left open, each a comment."""
    return [
        Diagnostic(
            "E135",
            f"unfinished: {match[1].strip()}",
            Place(file, number, match.start(1) + 1),
            "Do what it says, then remove the comment.",
        )
        for number, line in enumerate(text.splitlines(), 1)
        if (match := _FILL_IN.search(line))
    ]


def _fixes_places(root: yaml.MappingNode) -> bool:
    """Whether a file means to fix all places: each layer's processors, and some offset.

    A spelling that is close counts: the key is meant. So does a single layer without processors
    where every layer states its offset: it was forgotten.
    """
    layers = [node for key, node in root.value if key.value == "layers"]
    if not layers or not isinstance(layers[0], yaml.SequenceNode):
        return True
    keys = [
        [key.value for key, _ in layer.value if isinstance(key.value, str)]
        for layer in layers[0].value
        if isinstance(layer, yaml.MappingNode)
    ]
    offsets = [any(key in ("in_offset", "out_offset") for key in names) for names in keys]
    lacking = len(keys) - sum(map(_names_processors, keys))
    forgotten = lacking == 1 and len(keys) > 1 and all(offsets)
    return forgotten or ((any(offsets) or len(keys) < 2) and lacking == 0)


def _names_processors(keys: list[str]) -> bool:
    """Whether the keys of a layer say which processors it uses."""
    if "processors" in keys:
        return True
    names = [spelling for key in LAYER_KEYS for spelling in key.spellings]
    return any(k not in names and closest(k.lower(), names) == "processors" for k in keys)


def position(diagnostic: Diagnostic) -> tuple[int, int]:
    """Return line and column of a complaint, to sort by; those without come first."""
    place = diagnostic.place or Place()
    return place.line or 0, place.column or 0


class _Reader:
    """Reads sections of one file and collects their problems."""

    def __init__(self, file: str, placed: bool, limited: bool) -> None:
        self.file = file
        self.placed = placed
        self.limited = limited
        self.problems: list[Diagnostic] = []
        self.meant: dict[Place, tuple[str, Entry]] = {}

    def problem(
        self,
        code: str,
        message: str,
        place: Place,
        remedy: str | None = None,
        effects: Effects = _NO_LAYERS,
        **others: Any,
    ) -> None:
        """Note a complaint."""
        self.problems.append(Diagnostic(code, message, place, remedy, effects=effects, **others))

    def allowed(self, keys: tuple[Key, ...]) -> tuple[Key, ...]:
        """Return the keys of a section; what is not to be placed needs fewer."""
        keys = keys if self.limited else without_limits(keys)
        return keys if self.placed else without_layout(keys)

    def mappings(self, node: yaml.Node, name: str) -> list[yaml.MappingNode]:
        """Return the elements of a list of mappings; anything else is a problem."""
        if not isinstance(node, yaml.SequenceNode):
            self.problem(
                "E109",
                f"'{name}' is {kind_of(node)}, expected a list of mappings",
                place_of(node, self.file),
                f"Begin each element of '{name}' with a dash.",
            )
            return []
        if not node.value or len(node.value) > MAX_LAYERS:
            self.problem(
                "E109",
                f"'{name}' has {len(node.value)} elements, expected 1 to {MAX_LAYERS}",
                place_of(node, self.file),
            )
            return []
        elements = []
        for element in node.value:
            if isinstance(element, yaml.MappingNode):
                elements.append(element)
            else:
                self.problem(
                    "E109",
                    f"an element of '{name}' is {kind_of(element)}, expected a mapping",
                    place_of(element, self.file),
                )
        return elements

    def layer(self, node: yaml.MappingNode, prefix: str) -> tuple[Section, Problems]:
        """Convert a layer; also return the complaints about its keys."""
        before = len(self.problems)
        section, _ = self.section(node, self.allowed(LAYER_KEYS), (), prefix, vital=False)
        return section, tuple(self.problems[before:])

    def section(
        self,
        node: yaml.MappingNode,
        keys: Sequence[Key],
        others: Iterable[str],
        prefix: str,
        *,
        vital: bool = True,
    ) -> tuple[Section, dict[str, yaml.Node]]:
        """Convert the keys of a mapping; also return the nodes of `others`, unconverted.

        Without any key of a `vital` section that blocks anything, nothing is known of the layers.
        """

        def without(key: Key) -> Effects:
            return _NO_LAYERS if vital and key.blocks else effects(key.blocks)

        odd = _NO_LAYERS if vital else NO_EFFECTS
        spellings = {s: key for key in keys for s in key.spellings}
        names = set(others)
        entries: dict[str, Entry] = {}
        first: dict[str, str] = {}
        rest: dict[str, yaml.Node] = {}
        misspelled: list[tuple[Key, str, yaml.Node]] = []
        meant: dict[str, yaml.Node] = {}
        for spelling, key_node, value_node in mapping_items(node, self.file, self.problems, odd):
            key = spellings.get(spelling)
            if key is None:
                if spelling in names:
                    rest[spelling] = value_node
                    continue
                near = self._unknown(spelling, key_node, [*spellings, *names], prefix)
                if near in spellings:
                    misspelled.append((spellings[near], spelling, value_node))
                elif near is not None:
                    meant.setdefault(near, value_node)
                continue
            if key.name in first:
                self.problem(
                    "E107",
                    f"{prefix}'{spelling}' and '{first[key.name]}' are the same key",
                    place_of(key_node, self.file),
                    "Keep one of the two.",
                    NO_EFFECTS,
                )
                continue
            first[key.name] = spelling
            self._convert(key, spelling, value_node, prefix, entries, without(key))
        for key, spelling, value_node in misspelled:
            if first.setdefault(key.name, spelling) == spelling:
                lost = without(key) if key.required else odd
                self._convert(key, spelling, value_node, prefix, entries, lost)
        for key in keys:
            if key.required and key.name not in first:
                self.problem(
                    "E108",
                    f"{prefix}the key '{key.name}' is missing",
                    place_of(node, self.file),
                    f"Add it: {key.sentence}",
                    without(key),
                )
        return Section(place_of(node, self.file), entries), {**meant, **rest}

    def _unknown(self, key: str, node: yaml.Node, allowed: list[str], prefix: str) -> str | None:
        """Complain; return the key that was probably meant."""
        remedy, near = misplaced_or_foreign(key, allowed), None
        if remedy is None:
            near = closest(key.lower(), allowed)
            listed = f"Known keys: {', '.join(sorted(allowed))}."
            remedy = f"Did you mean '{near}'?" if near else listed
        place = place_of(node, self.file)
        edit = Edit(place, key, near) if near else None
        message = f"{prefix}unknown key '{key}'"
        self.problem("E105", message, place, remedy, NO_EFFECTS, value=key, edit=edit)
        return near

    def _convert(
        self,
        key: Key,
        spelling: str,
        node: yaml.Node,
        prefix: str,
        entries: dict[str, Entry],
        without: Effects,
    ) -> None:
        """Add the entry of a key, or a complaint with the effects of going on `without` it."""
        place = place_of(node, self.file)
        try:
            entries[key.name] = Entry(key.kind.read(node), place)
        except (KindError, ValueError) as exc:
            fault = exc.message if isinstance(exc, KindError) else f"is {kind_of(node)}"
            remedy = exc.remedy if isinstance(exc, KindError) else None
            remedy = remedy or remedy_of_comment(node)
            if isinstance(exc, KindError) and exc.meant is not None:
                self.meant[place] = key.name, Entry(exc.meant, place)
            self.problem(
                "E109",
                f"{prefix}'{spelling}' {fault}, expected {key.kind.expected()}",
                place,
                remedy,
                without,
                value=node.value if isinstance(node, yaml.ScalarNode) else None,
                limit=key.kind.expected(),
            )

    def in_sequence(
        self, sections: list[tuple[Section, Problems]]
    ) -> list[tuple[LayerDescription, Problems]]:
        """Order the layers by their slots and close the gaps."""
        slots: dict[int, tuple[Section, Problems]] = {}
        slot = -1
        for section, problems in sections:
            slot = section.get("sequence", slot + 1)
            if slot in slots:
                other = slots[slot][0].place
                self.problem(
                    "E112",
                    f"sequence {slot} is used for the second time, first in line {other.line}",
                    section.place_of("sequence"),
                    "Give each layer a slot of its own.",
                )
            slots[slot] = section, problems
        ordered = [slots[s] for s in sorted(slots)]
        return [
            (LayerDescription(section.place, section.entries, index), problems)
            for index, (section, problems) in enumerate(ordered)
        ]
