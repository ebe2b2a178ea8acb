"""The language as JSON Schema (draft 2020-12), so that editors complete and check while typing.

Derived from the same tables as the parser. It knows single keys; what depends on other keys, on the
chip or on the weights is left to `ai8xize.py --check-only`. See docs/editors.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS, NESTED_KEYS, Key, without_layout
from ai8xtools.synthesis.parse.kinds import Schema
from ai8xtools.synthesis.parse.parser import MAX_LAYERS

_LISTS = {
    "layers": "The layers, in the order of execution unless they say otherwise.",
    "unload": "What cnn_unload() reads, instead of the layers with output.",
    "data_buffer": "The rolling buffer.",
}


def description_schema() -> Schema:
    """Return the schema of a network description."""
    lists = {
        name: {
            "description": sentence,
            "type": "array",
            "items": {"$ref": f"#/$defs/{name}"},
            "minItems": 1,
            "maxItems": MAX_LAYERS,
        }
        for name, sentence in _LISTS.items()
    }
    elements = {"layers": without_layout(LAYER_KEYS), **NESTED_KEYS}
    root = _section(GLOBAL_KEYS, lists)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Network description",
        "description": "A network for the MAX78000 or MAX78002, for ai8xize.py --config-file.",
        **root,
        "required": [*root["required"], "layers"],
        "$defs": {name: _section(keys, {}) for name, keys in elements.items()},
    }


def _section(keys: Sequence[Key], others: Mapping[str, Schema]) -> Schema:
    """Return the schema of a mapping with the keys and with `others`."""
    properties = {name: schema for key in keys for name, schema in _properties(key)}
    section: Schema = {
        "type": "object",
        "properties": {**properties, **others},
        "required": [key.name for key in keys if key.required],
        "additionalProperties": False,
    }
    exclusive = [
        {"not": {"required": list(pair)}} for key in keys for pair in combinations(key.spellings, 2)
    ]
    return {**section, "allOf": exclusive} if exclusive else section


def _properties(key: Key) -> Iterator[tuple[str, Schema]]:
    """Yield each spelling of a key with what it accepts."""
    default = f" Default: {key.default}." if key.default else ""
    yield key.name, {"description": key.sentence + default, **key.accepts.schema()}
    for alias in key.aliases:
        yield alias, {"description": f"Same as {key.name}.", **key.accepts.schema()}
