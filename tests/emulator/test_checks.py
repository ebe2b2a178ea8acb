"""What silicon would punish silently is reported with layer, processor and address."""

from __future__ import annotations

import numpy as np
import pytest

from ai8xtools.emulator import EmulatorError, LayerFinding
from ai8xtools.emulator.checks.finding import Severity, WrongField
from device import MAX78000
from device.chip import DEFAULT_APB_BASE, FIFO_DATA
from tests.emulator.by_hand import Words, one_by_one

IMAGE = np.array([[[1, 2], [3, -128]]])


def data(instance: int, word: int) -> int:
    return DEFAULT_APB_BASE + MAX78000.data_address(instance, 4 * word)


def findings(words: Words) -> list[LayerFinding]:
    return words.run()[0].findings


def one(words: Words) -> LayerFinding:
    found = findings(words)
    assert len(found) == 1, [str(finding) for finding in found]
    return found[0]


def copying(words: Words, layer: int, source: int, target: int, pixels: int = 4) -> None:
    """Add a pass-through layer that copies channel 0, one row, from word to word."""
    words.layer(layer, "RCNT", last=0)
    words.layer(layer, "CCNT", last=pixels - 1)
    words.layer(layer, "RPTR_BASE", word=source)
    words.layer(layer, "ONED", kernel_length=1)
    words.layer(layer, "WPTR_BASE", pointer=target)
    words.layer(layer, "WPTR_TOFFS", words=0x800)
    words.layer(layer, "LCTL", always=1, max_pool=1, shared_output=1)
    words.layer(layer, "ENA", group=0, processors=1)
    words.layer(layer, "POST", time_slots=1, one_by_one=1)
    words.control("LCNT_MAX", last=layer)


def test_sound_network_has_no_findings() -> None:
    words = one_by_one(IMAGE, np.array([[2]]))
    copying(words, 1, 0x800, 0x100)
    copying(words, 2, 0x100, 0x200)
    assert findings(words) == []


def test_data_that_nobody_wrote() -> None:
    words = one_by_one(np.repeat(IMAGE, 2, axis=0), np.array([[1, 1]]))
    words.layer(0, "RPTR_BASE", word=2)
    found = one(words)
    assert str(found) == (
        "layer 0: processor 0 reads data memory instance 0 word 4 (0x50400010), which was never "
        "written (4 such bytes)"
    )
    assert (found.layer, found.processor, found.address) == (0, 0, data(0, 4))


def test_processor_without_data_is_named() -> None:
    words = one_by_one(np.repeat(IMAGE, 6, axis=0), np.ones((1, 6), int))
    words.rows = [row for row in words.rows if row[1] != data(1, 3)]  # pixel 3 of channels 4, 5
    found = one(words)
    assert (found.layer, found.processor, found.address) == (0, 4, data(1, 3))


def test_output_that_is_overwritten_before_anything_reads_it() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    copying(words, 1, 0, 0x802, pixels=2)
    found, rest = findings(words)
    assert "no layer reads its output" in str(rest)
    assert "output overwrites that of layer 0 before anything has read it" in str(found)
    assert "instance 0 word 2050 (0x50402008) (2 bytes)" in str(found)
    assert (found.layer, found.processor, found.address) == (1, 0, data(0, 0x802))


def test_output_that_is_overwritten_in_part() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    copying(words, 1, 0, 0x802)
    copying(words, 2, 0x800, 0x100)
    lost, found = findings(words)
    assert "overwrites that of layer 0" in str(lost)
    assert "processor 0 reads data of layer 0 that layer 1 has overwritten in part" in str(found)
    assert (found.layer, found.processor, found.address) == (2, 0, data(0, 0x802))


def test_input_that_is_overwritten_in_part() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    copying(words, 1, 0x800, 3)
    copying(words, 2, 0, 0x100)
    assert "reads data of the input that layer 1 has overwritten in part" in str(one(words))


def test_layer_may_add_to_the_output_of_another() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    copying(words, 1, 0x800, 0x803, pixels=1)
    copying(words, 2, 0x800, 0x100)
    assert findings(words) == []


def test_channel_that_no_layer_reads() -> None:
    """The processor map of layer 1 leaves out a channel of layer 0."""
    words = one_by_one(IMAGE, np.array([[1], [100], [127]]))
    copying(words, 1, 0x800, 0x100)
    words.layer(1, "ENA", group=0, processors=0b101)
    found = one(words)
    assert str(found) == (
        "layer 0: no layer reads its output with processor 1, though layer 1 does with others: "
        "data memory 0x50402000"
    )
    assert (found.layer, found.processor, found.address) == (0, 1, data(0, 0x800))
    words.layer(1, "ENA", group=0, processors=0b111)
    assert findings(words) == []
    assert not found.harmless


def test_channel_in_front_that_no_layer_reads_is_a_note() -> None:
    """Kernels of another layer may stand there."""
    words = one_by_one(IMAGE, np.array([[1], [100], [127]]))
    copying(words, 1, 0x800, 0x100)
    words.layer(1, "ENA", group=0, processors=0b110)
    found = one(words)
    assert "no layer reads its output with processor 0, though" in str(found)
    assert found.harmless


def test_output_that_no_layer_reads_is_noted() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    copying(words, 1, 0, 0x100)
    found = one(words)
    assert str(found) == "layer 0: no layer reads its output, at data memory 0x50402000"
    assert (found.harmless, found.processor, found.address) == (True, 0, data(0, 0x800))


def flattening(words: Words, passes: int, source: int) -> None:
    """Add a layer 1 that reads an image of one channel as one pixel in several passes."""
    copying(words, 1, source, 0x100, pixels=1)
    words.layer(1, "LCTL2", passes=passes - 1)
    words.layer(1, "WPTR_CHOFFS", words=int(passes > 1))
    words.layer(1, "MCNT", last=8 * (passes - 1))


@pytest.mark.parametrize(
    ("passes", "source", "message", "word"),
    [
        (3, 0x800, "reads a part of the output of layer 0 (3 of 4 bytes)", 0x800),
        (4, 0x801, "reads data that no layer wrote as if it were output of layer 0", 0x804),
        (5, 0x800, "reads data that no layer wrote as if it were output of layer 0", 0x804),
    ],
)
def test_wrong_part_of_a_flattened_image(passes: int, source: int, message: str, word: int) -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    words.pixels(IMAGE, word=0x804)
    flattening(words, passes, source)
    found = findings(words)[0]
    assert message in str(found)
    assert (found.layer, found.processor, found.address) == (1, 0, data(0, word))
    flattening(words, 4, 0x800)
    assert findings(words) == []


def test_lanes_without_a_channel_need_no_reader() -> None:
    words = one_by_one(IMAGE, np.array([[1], [0]]), post={"bias": 1})  # no kernel, but a bias
    words.bias([0, 5])
    copying(words, 1, 0x800, 0x100)
    assert findings(words) == []


def test_own_input_that_is_overwritten_before_it_is_read() -> None:
    words = Words()
    words.pixels(np.arange(8).reshape(1, 1, 8))
    copying(words, 0, 0, 2, pixels=8)
    found = [finding for finding in findings(words) if not finding.harmless]
    assert "overwrites the layer's own input in data memory instance 0 word 2" in str(found[0])
    assert str(found[0]).endswith("(6 words), before it is read")
    assert (found[0].layer, found[0].processor, found[0].address) == (0, 0, data(0, 2))


@pytest.mark.parametrize(("target", "harmless"), [(-2, True), (0, True), (1, False)])
def test_own_input_that_was_read_may_be_overwritten(target: int, harmless: bool) -> None:
    words = Words()
    words.pixels(np.arange(8).reshape(1, 1, 8), word=2)
    copying(words, 0, 2, 2 + target, pixels=8)
    assert one(words).harmless is harmless


def test_kernel_window_reads_ahead_of_the_output() -> None:
    """A 3x3 kernel with pad 1 has read one row and one column more than it writes."""

    def shifted(words_ahead: int) -> bool:
        words = one_by_one(np.ones((1, 4, 4), int), np.zeros((1, 1), int), out_word=words_ahead)
        words.layer(0, "RCNT", last=5, pad=1)
        words.layer(0, "CCNT", last=5, pad=1)
        words.layer(0, "ONED")
        words.layer(0, "WPTR_TOFFS")
        words.layer(0, "TPTR", last=3)
        return one(words).harmless

    assert shifted(0)
    assert shifted(4)
    assert not shifted(6)


def test_kernels_that_were_never_loaded() -> None:
    words = one_by_one(np.repeat(IMAGE, 3, axis=0), np.ones((1, 3), int))
    column = DEFAULT_APB_BASE + MAX78000.kernel_address(2)
    words.rows = [row for row in words.rows if not column <= row[1] < column + 16]
    words.kernel_bytes(2, [1], first_column=1)
    words.layer(0, "MCNT", last=9 * 8)
    words.layer(0, "LCTL2", last_output=9 * 8)
    for processor in (0, 1):
        words.kernel_bytes(processor, [1], first_column=1)
    found = findings(words)[0]
    assert "processor 2 reads kernel column 0 of the layer at 0x50188000, which was never" in str(
        found
    )
    assert (found.layer, found.processor, found.address) == (0, 2, column)


def test_kernels_that_no_processor_has() -> None:
    """Both processors lack the columns of the last outputs, which layer 1 reads."""
    words = one_by_one(np.repeat(IMAGE, 2, axis=0), np.ones((20, 2), int))
    column = DEFAULT_APB_BASE + MAX78000.kernel_address(0, 1)
    for processor in (0, 1):
        start = DEFAULT_APB_BASE + MAX78000.kernel_address(processor, 1)
        words.rows = [row for row in words.rows if not start <= row[1] < start + 2 * 16]
    copying(words, 1, 0x800, 0x100)
    assert not any("kernel" in str(found) for found in findings(words))  # 1 reads output 0 alone
    for group in range(2):
        words.layer(1, "ENA", group=group, processors=0xFFFF if group == 0 else 0xF)
    found = findings(words)[0]
    assert str(found) == (
        f"layer 0: processor 0 reads kernel column 1 of the layer at 0x{column:08x}, which was "
        "never loaded (4 such columns)"
    )
    assert (found.layer, found.processor, found.address) == (0, 0, column)


def test_kernels_of_the_last_layer_that_no_processor_has() -> None:
    words = one_by_one(IMAGE, np.ones((20, 1), int))
    words.layer(0, "MCNT", first=18 * 8, last=(18 + 19) * 8)
    assert "reads kernel column 1 of the layer" in str(one(words))


def test_processors_without_their_kernels() -> None:
    words = one_by_one(np.repeat(IMAGE, 2, axis=0), np.ones((1, 2), int))
    words.layer(0, "ENA", group=0, processors=0b11, kernels=0b01)
    kernels, processors = findings(words)
    assert str(kernels) == (
        "layer 0: group 0, ENA (0x50100710) kernels: expected 3, found 1 (the processors that take "
        "part)"
    )
    assert kernels.wrong == WrongField(0, "ENA", "kernels", expected=3, actual=1)
    assert processors.wrong == WrongField(0, "ENA", "processors", expected=1, actual=3)
    assert {found.address for found in (kernels, processors)} == {0x50100710}


def test_biases_that_were_never_loaded() -> None:
    words = one_by_one(IMAGE, np.array([[1]]), post={"bias": 1, "bias_offset": 3})
    words.bias([1, 2, 3])
    found, hint = findings(words)
    assert hint.harmless
    assert hint.wrong == WrongField(0, "POST", "bias_offset", expected=0, actual=3)
    assert str(found) == (
        "layer 0: bias 3 of group 0 at 0x5010800c was never loaded (1 such biases)"
    )
    assert (found.layer, found.processor, found.address) == (0, 0, 0x5010800C)
    words.bias([1, 2, 3, 4])
    assert findings(words) == []


def test_layers_behind_the_last_are_reported() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    copying(words, 1, 0x800, 0x100)
    copying(words, 2, 0x100, 0x200)
    words.control("LCNT_MAX", last=0)
    found = one(words)
    assert str(found) == (
        "layer 1: never executed: LCNT_MAX (0x50100008) ends the network at layer 0, but "
        "layers 1 to 2 have processors"
    )
    assert found.address == 0x50100008


def test_layer_without_processors_is_reported() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    words.control("LCNT_MAX", last=1)
    found = one(words)
    assert "does nothing: ENA (0x50100714) enables no processor in any group, though" in str(found)
    assert (found.layer, found.address) == (1, 0x50100714)


def test_biases_behind_the_first_must_be_loaded() -> None:
    words = one_by_one(IMAGE, np.ones((3, 1), int), post={"bias": 1})
    words.bias([1, 2])
    found, hint = findings(words)
    assert "bias 2 of group 0 at 0x50108008 was never loaded" in str(found)
    assert hint.harmless
    assert hint.wrong == WrongField(0, "POST", "bias", expected=0, actual=1)


def test_fewer_kernels_than_outputs() -> None:
    words = one_by_one(IMAGE, np.ones((3, 1), int))
    words.layer(0, "MCNT", first=0, last=8)
    found = one(words)
    assert str(found) == (
        "layer 0: group 0, MCNT (0x50100610) last: expected 0x10, found 8 (3 outputs and 1 passes "
        "have 3 kernels)"
    )
    assert found.severity is Severity.ERROR
    assert found.address == 0x50100610


def test_words_that_stay_in_a_fifo() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    words.rows += [(4, DEFAULT_APB_BASE + FIFO_DATA, pixel) for pixel in range(6)]
    found = one(words)
    assert str(found) == (
        "layer 0: the FIFO of group 0 got 6 words, the input has 4: the rest is left over"
    )
    assert (found.layer, found.address) == (0, 0x50000008)


def test_fifos_without_any_word_are_refused() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    words.control("CTL", enable=1, clock_enable=1, fifo=1)
    with pytest.raises(EmulatorError) as caught:
        words.run()
    assert caught.value.code == "E833"
    assert caught.value.message == "layer 0 reads the FIFOs, but they got no words"


def test_kernels_that_other_kernels_overwrite() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    base = DEFAULT_APB_BASE + MAX78000.kernel_address(0)
    for value in (1, 2):  # the same column, packed
        words.rows += [(1, base | 1, 1), (4, base, 0), (4, base + 4, 0), (4, base + 8, value << 24)]
    found = one(words)
    assert "processor 0 has kernel column 0 of the layer at 0x50180000 overwritten" in str(found)
    assert (found.layer, found.processor, found.address) == (0, 0, base)


def test_kernels_may_be_loaded_again() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    base = DEFAULT_APB_BASE + MAX78000.kernel_address(0)
    words.rows += 2 * [(1, base | 1, 1), *((4, base + 4 * i, i << 24) for i in range(3))]
    assert findings(words) == []


def test_output_beyond_the_memory() -> None:
    found = findings(one_by_one(IMAGE, np.array([[1], [1]]), out_word=0x1FFE))[0]
    assert str(found) == (
        "layer 0: output word 8192 of data memory instance 0 (0x50408000) is beyond the 8192 that "
        "it has (4 such bytes)"
    )
    assert (found.layer, found.processor, found.address) == (0, 0, data(0, 0x2000))


@pytest.mark.parametrize("bits", [{"clock_enable": 1}, {"enable": 1}, {}])
def test_group_that_is_not_enabled(bits: dict[str, int]) -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    words.control("CTL", **bits)
    with pytest.raises(EmulatorError) as caught:
        words.run()
    assert caught.value.code == "E834"
    assert caught.value.message == (
        "group 0 takes part in layer 0, but is not enabled in 0x50100000"
    )
