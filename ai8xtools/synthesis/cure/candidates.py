"""The changes to try, the likeliest first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, product, zip_longest

from ai8xtools.diagnostics import Diagnostic, Edit, Place
from ai8xtools.synthesis.cure.lines import DescriptionLine, blocks_of, lines_of
from ai8xtools.synthesis.cure.values import mask_text, usual_values, values_for
from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS, Key
from ai8xtools.values import frozen

_COMMON = (
    "pool_stride", "max_pool", "avg_pool", "pad", "flatten", "op", "kernel_size", "eltwise",
    "operands", "in_sequences", "in_offset", "out_offset", "output_width", "stride", "write_gap",
)  # fmt: skip
"""Keys that are missing more often than others."""
_MOST_INSERTED = 6
"""Values that a missing key is tried with."""
_MOST_MASK = 64
_OF_ITS_OWN = ("name", "data_format", "in_offset", "in_sequences", "output_processors", "flatten")
"""Keys that a layer does not share with others."""
_POOLING = ("max_pool", "avg_pool", "pool_stride")
_MOST_FAR = 3
"""Values that a line far from errors is tried with before keys and layers are."""
_AROUND = 3
"""Up to this distance lines are of the layer of an error or of the next ones."""
_MOST_LAYERS = 4
"""Layers next to an error that are tried with keys that are missing."""
_KEYS = {key.name: key for key in (*GLOBAL_KEYS, *LAYER_KEYS)}


def applied(text: str, edit: Edit) -> str:
    """Return a text after an edit that stands in it."""
    lines = text.split("\n")
    place = edit.place
    assert place.line is not None and place.column is not None
    start = sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1
    assert text.startswith(edit.old, start), edit
    return text[:start] + edit.new + text[start + len(edit.old) :]


def candidates(
    text: str,
    file: str,
    messages: Sequence[Diagnostic],
    names: Sequence[str] = (),
    channels: Sequence[int] = (),
) -> Iterator[Edit]:
    """Yield changes of a description, those in and near the lines of its errors first.

    `names` may be missing in it, and layers with inputs of so many `channels`. The same change may
    come more than once.
    """
    drawer = _Drawer.of(text, file, messages, names, channels)
    lines = sorted(drawer.lines, key=lambda line: drawer.distance(line.number))
    near = [line for line in lines if drawer.distance(line.number) <= 1]
    for line in near:
        yield from drawer.of_form(line)
    for line in near:
        yield from drawer.of_key(line)
    yield from drawer.of_network((*names, "test"))
    for line in lines:
        yield from drawer.of_form(line)
    yield from drawer.of_layout()
    yield from drawer.missing(required=True)
    yield from drawer.blocks_twice()
    yield from drawer.blocks_exchanged()
    yield from _in_turn(drawer.of_value(line) for line in drawer.wrong_lines(lines))
    yield from _in_turn(drawer.as_usual(line) for line in lines)
    yield from _in_turn(drawer.of_value(line) for line in near)
    for line in near:
        yield from drawer.swapped(line)
    around = [line for line in lines if drawer.distance(line.number) <= _AROUND]
    yield from _in_turn(islice(drawer.of_value(line), _MOST_INSERTED) for line in around)
    yield from _in_turn(islice(drawer.of_value(line), _MOST_FAR) for line in lines)
    yield from drawer.missing(required=False)
    yield from drawer.missing_layers()
    yield from _in_turn(drawer.of_value(line) for line in lines)
    for line in lines:
        yield from drawer.left_out(line)


def _in_turn(several: Iterable[Iterator[Edit]]) -> Iterator[Edit]:
    """Yield the first of each, then the second ones."""
    for row in zip_longest(*several):
        yield from filter(None, row)


@frozen
class _Drawer:
    """Draws changes of one text; `wrong` are the lines of errors, `noted` those of all messages,
    `words` what errors say.
    """

    content: tuple[str, ...]
    file: str
    lines: tuple[DescriptionLine, ...]
    blocks: tuple[tuple[int, int], ...]
    wrong: tuple[int, ...]
    words: tuple[str, ...]
    masks: tuple[str, ...]
    noted: tuple[int, ...]

    @staticmethod
    def of(
        text: str,
        file: str,
        messages: Sequence[Diagnostic],
        names: Sequence[str],
        channels: Sequence[int],
    ) -> _Drawer:
        content = tuple(text.split("\n"))
        lines = lines_of(text)
        errors = [d for d in messages if d.severity.is_error]
        noted, wrong = (
            tuple(d.place.line for d in some if d.place is not None and d.place.line is not None)
            for some in (messages, errors)
        )
        messages_text = " ".join(f"{d.message} {d.remedy or ''}" for d in errors)
        words = re.findall(r"0x[0-9a-fA-F.]*[0-9a-fA-F]|[\w-]+", messages_text)
        blocks = blocks_of(lines, len(content))
        masks = tuple(mask_text((1 << count) - 1) for count in channels if count <= _MOST_MASK)
        return _Drawer(
            content,
            file,
            tuple(lines),
            tuple(blocks),
            wrong,
            (*masks, *names, *words),
            masks,
            noted,
        )

    def distance(self, number: int) -> int:
        """Return how far a line is from the errors: 0 at one, 1 beside one, 2 in its layer."""
        if number in self.wrong:
            return 0
        if number - 1 in self.wrong or number + 1 in self.wrong:
            return 1
        apart = [abs(self._block(number) - self._block(other)) for other in self.wrong]
        return 2 + min(apart, default=0)

    def _block(self, number: int) -> int:
        return sum(first <= number for first, _ in self.blocks)

    def _edit(self, number: int, column: int, old: str, new: str) -> Edit:
        return Edit(Place(self.file, number, column), old, new, certain=False)

    def of_form(self, line: DescriptionLine) -> Iterator[Edit]:
        """Yield the line with the indentation of others, and with a colon and a space."""
        leads = [x.lead for x in self.lines if x.lead]
        plain = Counter(x for x in leads if "-" not in x).most_common(1)
        dashed = Counter(x for x in leads if "-" in x).most_common(1)
        for (lead, _), *_rest in filter(None, (plain, dashed)):
            if lead != line.lead and (line.lead or line.key not in _GLOBAL):
                yield self._edit(line.number, 1, line.lead, lead)
        if line.separator != ": ":
            column = len(line.lead + line.key) + 1
            yield self._edit(line.number, column, line.separator, ": ")

    def of_key(self, line: DescriptionLine) -> Iterator[Edit]:
        """Yield the line with the key that was meant, and without a line that stands twice."""
        if line.meant is not None and line.key not in line.meant.spellings:
            yield self._edit(line.number, len(line.lead) + 1, line.key, line.meant.name)
        block = self._block(line.number)
        twice = [x for x in self.lines if x.key == line.key and self._block(x.number) == block]
        if len(twice) > 1:
            yield from self.left_out(line)

    def of_value(self, line: DescriptionLine) -> Iterator[Edit]:
        """Yield the line with other values."""
        if line.meant is not None:
            values = values_for(line.meant, line, self.lines, self.words)
            yield from self._with_values(line, values)

    def as_usual(self, line: DescriptionLine) -> Iterator[Edit]:
        """Yield the line with the values that other layers have."""
        if line.meant is not None:
            yield from self._with_values(line, usual_values(line, self.lines))

    def _with_values(self, line: DescriptionLine, values: Iterable[str]) -> Iterator[Edit]:
        old = self.content[line.number - 1][line.column - 1 :]
        old = old if "#" not in old else line.value
        yield from (self._edit(line.number, line.column, old, value) for value in values)

    def wrong_lines(self, lines: Iterable[DescriptionLine]) -> list[DescriptionLine]:
        """Return the lines of errors about what they hold itself, not about what follows from it:
        their value is named.
        """
        return [x for x in lines if x.number in self.wrong and x.value in self.words]

    def swapped(self, line: DescriptionLine) -> Iterator[Edit]:
        """Yield the text with the value of the same key of another layer, which gets this one."""
        for other in self.lines:
            if other.meant is line.meant is not None and other.value != line.value:
                first, last = sorted((line, other), key=lambda one: one.number)
                text = "\n".join(self.content[first.number - 1 : last.number])[first.column - 1 :]
                end = len(text) - len(self.content[last.number - 1]) + last.column - 1
                between = text[len(first.value) : end]
                old = f"{first.value}{between}{last.value}"
                new = f"{last.value}{between}{first.value}"
                yield self._edit(first.number, first.column, old, new)

    def left_out(self, line: DescriptionLine) -> Iterator[Edit]:
        """Yield the text without a line; a dash in front of its key goes to the next one."""
        whole = self.content[line.number - 1]
        following = self.content[line.number] if line.number < len(self.content) else None
        if not line.begins_layer:
            yield (
                self._edit(line.number, 1, f"{whole}\n", "")
                if following is not None
                else (self._edit(line.number, 1, whole, ""))
            )
        elif following is not None and following.startswith(" " * len(line.lead)):
            yield self._edit(
                line.number, 1, f"{whole}\n{following}", line.lead + following[len(line.lead) :]
            )

    def blocks_twice(self) -> Iterator[Edit]:
        """Yield the text without a layer that stands there for the second time."""
        texts = [self.content[first - 1 : end - 1] for first, end in self.blocks]
        seen: list[tuple[str, ...]] = []
        for (first, _), text in zip(self.blocks, texts, strict=True):
            stripped = tuple(line for line in text if line.strip())
            if stripped in seen:
                end = "\n" if first + len(text) <= len(self.content) else ""
                yield self._edit(first, 1, "\n".join(text) + end, "")
            seen.append(stripped)

    def blocks_exchanged(self) -> Iterator[Edit]:
        """Yield the text with a layer in the place of the next one."""
        for (first, middle), (_, end) in pairwise(self.blocks):
            one, two = self.content[first - 1 : middle - 1], self.content[middle - 1 : end - 1]
            if one != two:
                yield self._edit(first, 1, "\n".join(one + two), "\n".join(two + one))

    def of_layout(self) -> Iterator[Edit]:
        """Yield the text without the second of two equal lines, and with a line without a key as a
        comment, or as the end of the one before."""
        for number, (one, two) in enumerate(pairwise(self.content), 2):
            if one == two != "":
                yield self._edit(
                    number, 1, f"\n{two}" if number == len(self.content) else f"{two}\n", ""
                )
        known = {line.number for line in self.lines if line.meant is not None}
        for number, line in enumerate(self.content, 1):
            text = line.lstrip()
            if number in known or not text or text.startswith("#"):
                continue
            lead = line.removesuffix(text)
            yield self._edit(number, len(lead) + 1, "", "# ")
            if number > 1:
                end = len(self.content[number - 2]) + 1
                yield self._edit(number - 1, end, f"\n{lead}", " ")

    def of_network(self, names: Sequence[str]) -> Iterator[Edit]:
        """Yield the text with a key that the network needs and does not have."""
        present = {line.meant.name for line in self.lines if line.meant and not line.lead}
        top = min((line.number for line in self.lines), default=1)
        for key in GLOBAL_KEYS:
            if key.required and key.name not in present:
                yield from (self._edit(top, 1, "", f"{key.name}: {name}\n") for name in names)

    def missing(self, *, required: bool) -> Iterator[Edit]:
        """Yield the text with a key that a layer does not have."""
        used = Counter(x.meant.name for x in self.lines if x.meant and x.lead)
        names = dict.fromkeys([name for name, _ in used.most_common()] + [*_COMMON])
        order = sorted(self.blocks, key=lambda block: self.distance(block[0]))[:_MOST_LAYERS]
        yield from _in_turn(
            self._inserted(key, block)
            for block in order
            for key in (_KEYS[name] for name in names)
            if key.required is required
        )

    def missing_layers(self) -> Iterator[Edit]:
        """Yield the text with a layer more that is like another one, for other channels."""
        offsets = [x.value for x in self.lines if x.meant and x.meant.name == "out_offset"]
        named = [block for block in self.blocks[1:] if self._is_noted(block)]
        common = Counter(x.value for x in self.lines if x.meant is _KEYS["processors"])
        masks = dict.fromkeys((*self.masks, *common))
        pooling: tuple[dict[str, str] | None, ...]
        pooling = (None, {}, {"max_pool": "2", "pool_stride": "2"})  # without, as it is, by 2
        for position, source, pooled in product(named[:2], self.blocks, pooling):
            left = (*_OF_ITS_OWN, *(_POOLING if pooled != {} else ()))
            inside = [x for x in self.lines if source[0] <= x.number < source[1]]
            keys = {x.meant.name: x.value for x in inside if x.meant and x.meant.name not in left}
            keys |= pooled or {}
            pads = dict.fromkeys((keys["pad"], "0", "1", "2")) if "pad" in keys else ("",)
            indent = " " * self.content[position[0] - 1].index("-")
            for pad, mask, offset in product(pads, masks, dict.fromkeys(offsets)):
                others = {"processors": mask, "out_offset": offset, "pad": pad}
                pairs = [f"{key}: {others.get(key, value)}" for key, value in keys.items()]
                body = f"\n{indent}  ".join(pairs)
                yield self._edit(position[0], 1, "", f"{indent}- {body}\n")

    def _is_noted(self, block: tuple[int, int]) -> bool:
        return any(block[0] <= line < block[1] for line in self.noted)

    def _inserted(self, key: Key, block: tuple[int, int]) -> Iterator[Edit]:
        inside = [x for x in self.lines if block[0] <= x.number < block[1]]
        if any(x.meant is key for x in inside) or not inside:
            return
        lead = " " * len(inside[0].lead)
        for value in values_for(key, None, self.lines, self.words)[:_MOST_INSERTED]:
            yield self._edit(block[0] + 1, 1, "", f"{lead}{key.name}: {value}\n")


_GLOBAL = {name for key in GLOBAL_KEYS for name in key.spellings} | {"layers"}
