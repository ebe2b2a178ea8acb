"""Registers that differ: those of layers by their final value, control registers in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from ai8xtools.emulator.differences.difference import Difference, Subject, numbers
from ai8xtools.emulator.differences.side import LoadedWords
from ai8xtools.emulator.report.trace import format_value
from ai8xtools.emulator.words.addresses import AddressMap
from device.chip import (
    AON_CONTROL,
    FAST_FIFO_CONTROL,
    FIFO_CONTROL,
    POWER_CONTROL,
    POWER_REGISTERS,
)
from device.registers import FAST_FIFO_REGISTERS, SHARED_REGISTERS, Register

_POWER = ("power of the groups", "power of their kernel memories", "isolation", "reset")
assert len(_POWER) == POWER_REGISTERS

Write = tuple[int, int]
_MOST_CONTROL = 5000
"""What is changed in more control writes is not looked for."""
_Change = tuple[str, str, str]
"""Of a register: name of layer and register, field with its values, meaning."""


def register_differences(
    theirs: LoadedWords, ours: LoadedWords, names: dict[int, str]
) -> Iterator[Difference]:
    """Yield layer registers that have another value when the network starts, field by field."""
    addresses = ours.memory.addresses
    one, two = theirs.memory.registers, ours.memory.registers
    grouped: dict[_Change, list[int]] = {}
    every = {*one, *two} - addresses.ordered
    differing = [a for a in sorted(every) if one.get(a, 0) != two.get(a, 0)]
    for address in sorted(differing, key=lambda a: _layer(_split(addresses.describe(a))[1])):
        pair = one.get(address, 0), two.get(address, 0)
        group, name = _split(addresses.describe(address))
        changes = list(_fields(addresses.registers.get(address), pair))
        if not changes:
            yield _unexplained(addresses, address, pair)
        for values, meaning in changes:
            grouped.setdefault((_named(name, names), values, meaning), []).append(group)
    for (name, values, meaning), groups in grouped.items():
        unused = "" if _is_used(ours, name, groups) else "; the layer does not use that group"
        text = f"{name}, {numbers('group', groups)}: {values} ({meaning}){unused}"
        yield Difference(Subject.REGISTERS, text)


def order_differences(theirs: LoadedWords, ours: LoadedWords) -> Iterator[Difference]:
    """Yield control writes that have other values, are missing, surplus, or in another order."""
    addresses = ours.memory.addresses
    one, two = theirs.memory.control, ours.memory.control
    missing: list[Write] = []
    surplus: list[Write] = []
    if max(len(one), len(two)) > _MOST_CONTROL:
        if one != two:
            text = f"there are {len(one)} control writes there, {len(two)} here"
            yield Difference(Subject.ORDER, text)
        return
    pairs: list[tuple[Write, Write]] = []
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    for _, a, b, c, d in (code for code in matcher.get_opcodes() if code[0] != "equal"):
        there, here = one[a:b], two[c:d]
        names = [w[0] for w in there], [w[0] for w in here]
        same = SequenceMatcher(None, *names, autojunk=False)
        for tag, e, f, g, h in same.get_opcodes():
            if tag == "equal":
                pairs += zip(there[e:f], here[g:h], strict=True)
            else:
                surplus += there[e:f]
                missing += here[g:h]
    yield from _changed(addresses, pairs)
    for write in _common(surplus, missing):
        number = one.index(write) + 1, two.index(write) + 1
        text = f"{_shown(addresses, write)} is control write {number[0]} there, {number[1]} here"
        yield Difference(Subject.ORDER, text)
    for write in surplus:
        yield Difference(Subject.ORDER, f"{_shown(addresses, write)} is written there only")
    for write in missing:
        yield Difference(Subject.ORDER, f"{_shown(addresses, write)} is written here only")


def _common(one: list[Write], two: list[Write]) -> list[Write]:
    """Take what both lists hold out of them."""
    common = []
    for write in [*one]:
        if write in two:
            one.remove(write)
            two.remove(write)
            common.append(write)
    return common


def _changed(addresses: AddressMap, pairs: Iterable[tuple[Write, Write]]) -> Iterator[Difference]:
    """Yield writes to the same registers with other values, field by field."""
    grouped: dict[_Change, list[int]] = {}
    for (address, one), (_, two) in pairs:
        group, name = _split(addresses.describe(address))
        changes = list(_fields(_register(addresses, address), (one, two)))
        if address in range(POWER_CONTROL, POWER_CONTROL + 4 * POWER_REGISTERS, 4):
            meaning = _POWER[(address - POWER_CONTROL) // 4]
            changes = [(f"there 0x{one:x}, here 0x{two:x}", meaning)]
        if not changes:
            yield _unexplained(addresses, address, (one, two))
        for values, meaning in changes:
            grouped.setdefault((name, values, meaning), []).append(group)
    for (name, values, meaning), groups in grouped.items():
        place = f", {numbers('group', sorted({*groups}))}" if groups[0] >= 0 else ""
        yield Difference(Subject.REGISTERS, f"{name}{place}: {values} ({meaning})")


def _register(addresses: AddressMap, address: int) -> Register | None:
    """Return the declaration of a control register."""
    shared = {
        addresses.apb_base + FIFO_CONTROL: SHARED_REGISTERS["FIFO_CTL"],
        addresses.apb_base + AON_CONTROL: SHARED_REGISTERS["AON_CTL"],
        FAST_FIFO_CONTROL: FAST_FIFO_REGISTERS["CTL"],
    }
    return shared.get(address) or addresses.registers.get(address)


def _fields(register: Register | None, pair: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Yield the fields that differ with both values, and what they mean."""
    for field in () if register is None else register.fields:
        there, here = field.unpack(pair[0]), field.unpack(pair[1])
        if there != here:
            values = f"there {format_value(field, there)}, here {format_value(field, here)}"
            yield f"{field.name} is {values}", field.meaning


def _unexplained(addresses: AddressMap, address: int, pair: tuple[int, int]) -> Difference:
    place = addresses.describe(address)
    text = f"0x{address:08x} ({place}): there 0x{pair[0]:08x}, here 0x{pair[1]:08x}: no field of it"
    return Difference(Subject.UNEXPLAINED, text)


def _split(place: str) -> tuple[int, str]:
    """Take the group out of the name of a register; -1 for those that groups share."""
    words = place.split(" ", 2)
    return (int(words[1]), words[2]) if words[0] == "group" else (-1, place)


def _named(name: str, names: dict[int, str]) -> str:
    """Add the name of the layer: `layer 3 POST` becomes `layer 3 (conv4), POST`."""
    number = _layer(name)
    if number < 0:
        return name
    layer = names.get(number)
    return f"layer {number}{f' ({layer})' if layer else ''}, {name.split(' ')[2]}"


def _layer(name: str) -> int:
    """Return the layer of a register; -1 for those that layers share."""
    words = name.replace(",", "").split(" ")
    return int(words[1]) if words[0] == "layer" else -1


def _is_used(ours: LoadedWords, name: str, groups: Sequence[int]) -> bool:
    config = ours.layers.get(_layer(name))
    return config is None or bool({*groups} & {*config.used_groups})


def _shown(addresses: AddressMap, write: Write) -> str:
    return f"{addresses.describe(write[0])} = 0x{write[1]:08x}"
