"""quantize.py and ai8xize.py --device MCU: networks of PyTorch and ONNX become projects."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ai8x
from ai8xtools.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from ai8xtools.checkpoint.values import NETWORK
from ai8xtools.commands.q15 import mcu
from ai8xtools.commands.targets import main
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.diagnostics.outcome import recorded
from ai8xtools.software.container import unpack, verify_vectors
from ai8xtools.software.container.from_graph import memory_of
from ai8xtools.software.plan.plan import NoRoomError
from tests.software.compiled import compiler, passed, run_project

NETWORK_FILE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 8, 1)
        self.deep = nn.Conv2d(8, 8, 5, 2, 2, groups=8)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.AvgPool2d(3, 2, 1, count_include_pad=False)
        self.end = nn.Linear(32, 6)

    def forward(self, x):
        x = torch.sigmoid(self.first(x))
        x = x * torch.tanh(self.deep(x).mean((2, 3), keepdim=True)) + x
        return torch.softmax(self.end(self.pool(self.norm(self.deep(x))).flatten(1)), 1)
"""
MCU = ["--device", "MCU", "--mcu", "stm32l4r5"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a network, its weights, samples, and the checkpoint of 8 bits."""
    found = tmp_path_factory.mktemp("net")
    (found / "net.py").write_text(NETWORK_FILE)
    space: dict[str, Any] = {"__name__": "net"}
    exec(NETWORK_FILE, space)
    torch.manual_seed(3)
    torch.save(space["Net"]().state_dict(), found / "net.pth")
    samples = np.random.default_rng(0).uniform(-1, 1, (24, 2, 8, 7)).astype(np.float32)
    np.save(found / "samples.npy", samples)
    np.save(found / "sample.npy", np.rint(samples[1] * 127).astype(np.int64))
    assert quantize(found, "net", "--import") == 0
    return found


def quantize(folder: Path, name: str, *words: str) -> int:
    """Quantize NAME.py:Net with NAME.pth to NAME-q.pth.tar."""
    files = [str(folder / f"{name}.pth"), str(folder / f"{name}-q.pth.tar")]
    given = ["--device", "MCU", "--model", f"{folder / name}.py:Net"]
    samples = ["--calibrate", str(folder / "samples.npy")]
    return main("quantize.py", [*files, *given, *samples, *words])


def generate(folder: Path, *words: str) -> int:
    """Write a project from what stands in a folder."""
    given = [*MCU, "--prefix", "p", "--test-dir", str(folder), "--overwrite", *words]
    return main("ai8xize.py", given)


def test_a_network_without_limits_comes_to_a_microcontroller(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = ["--checkpoint-file", str(folder / "net-q.pth.tar")]
    assert generate(folder, *checkpoint, "--sample-input", str(folder / "sample.npy")) == 0
    assert "Left to the application: softmax" in capsys.readouterr().out
    if compiler() is not None:
        files = {path.name: path.read_text() for path in (folder / "p").glob("*.[ch]")}
        assert passed(run_project(files, folder / "run"))


def test_a_sample_may_be_in_floating_point(folder: Path, tmp_path: Path) -> None:
    whole = np.load(folder / "sample.npy")
    words = ["--checkpoint-file", str(folder / "net-q.pth.tar"), "--sample-input"]
    written = []
    for number, values in enumerate((whole, whole / 128, whole / 100, whole * np.nan)):
        np.save(tmp_path / f"{number}.npy", values)
        if number > 1:
            with pytest.raises(InputError, match="those of training, -1 to 1, in floating"):
                generate(folder, *words, str(tmp_path / f"{number}.npy"))
            continue
        assert generate(folder, *words, str(tmp_path / f"{number}.npy")) == 0
        written.append((folder / "p" / "sampledata.h").read_text())
    assert written[0] == written[1]


LIBRARY_FILE = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 1, 3)
        self.deep = nn.Conv2d(1, 3, (3, 5))

    def forward(self, x):
        x = self.first(x * 4)
        return x.flatten(1), (self.deep(x) * 0.05).sigmoid().flatten(1)
"""
DRIVER = """#include <stdio.h>
#include "net.h"

static net_result result;
static float numbers[NET_IN_SIZE];

int main(void)
{
    unsigned output, channel;

    if (net_init() != NET_OK || fread(numbers, sizeof *numbers, NET_IN_SIZE, stdin) != NET_IN_SIZE
        || net_load_numbers(numbers, NET_CHW, NET_IN_SCALE) != NET_OK || net_run(&result) != NET_OK)
        return 1;
    for (output = 0; output < NET_OUTPUTS; output++)
        for (channel = 0; channel < (output ? NET_OUT_CHANNELS : 30); channel++)
            printf("%.9g\\n", (double)net_number(&result, output, channel, 0, 0));
    return 0;
}
"""


def test_libraries_have_the_units_and_shapes_of_the_network(folder: Path) -> None:
    (folder / "own.py").write_text(LIBRARY_FILE)
    space: dict[str, Any] = {"__name__": "own"}
    exec(LIBRARY_FILE, space)
    torch.manual_seed(1)
    net = space["Net"]()
    torch.save(net.state_dict(), folder / "own.pth")
    assert quantize(folder, "own", "--least-correlation", "0.9") == 0
    checkpoint = ["--checkpoint-file", str(folder / "own-q.pth.tar")]
    assert generate(folder, *checkpoint, "--symbol-prefix", "net", "--build", "cmake") == 0
    project = folder / "p"
    assert (project / "CMakeLists.txt").is_file()
    if (gcc := compiler()) is None:
        pytest.skip("no compiler is installed")
    files = {path.name: path.read_text() for path in project.glob("*.[ch]")}
    assert passed(run_project(files, folder))
    (folder / "driver.c").write_text(DRIVER)
    sources = [path for path in project.glob("*.c") if path.name != "main.c"]
    built = folder / "driver"
    subprocess.run([*gcc, "-I", project, folder / "driver.c", *sources, "-o", built], check=True)
    sample = np.load(folder / "samples.npy")[:1]
    done = subprocess.run([built], input=sample.tobytes(), capture_output=True, check=True)
    found = np.array(done.stdout.split(), float)
    wanted = torch.cat(net(torch.from_numpy(sample)), 1).detach().numpy()[0]
    assert found.shape == wanted.shape and abs(found - wanted).max() < 0.05


def save_weights_of_library_file(path: Path) -> None:
    """Write weights for the two layers of LIBRARY_FILE's network."""
    layers = {"first": torch.nn.Conv2d(2, 1, 3), "deep": torch.nn.Conv2d(1, 3, (3, 5))}
    torch.save(torch.nn.ModuleDict(layers).state_dict(), path)


def test_results_may_be_held_by_dictionaries_but_are_no_constants(folder: Path) -> None:
    text = LIBRARY_FILE[: LIBRARY_FILE.index("        x = ")]
    save_weights_of_library_file(folder / "held.pth")
    made = "self.deep(self.first(x))"
    (folder / "held.py").write_text(f"{text}        return {{'a': [{made}]}}\n")
    assert quantize(folder, "held") == 0
    constant = "self.first.bias + 1"
    (folder / "held.py").write_text(f"{text}        return {made}, {constant}\n")
    with pytest.raises(InputError, match="does not depend on its input"):
        quantize(folder, "held")
    (folder / "held.py").write_text(f"{text}        {made}\n")
    with pytest.raises(InputError, match="returns no tensor"):
        quantize(folder, "held")
    (folder / "held.py").write_text(f"{text}        return ({made} - 1000).log()\n")
    with pytest.raises(InputError, match="no finite number of sample 0"):
        quantize(folder, "held")


def test_samples_are_not_changed_by_networks_that_change_their_input(folder: Path) -> None:
    text = LIBRARY_FILE[: LIBRARY_FILE.index("        x = ")]
    save_weights_of_library_file(folder / "added.pth")
    samples = []
    for shifted in ("x.add_(1)", "x + 1"):
        (folder / "added.py").write_text(f"{text}        return self.deep(self.first({shifted}))\n")
        assert quantize(folder, "added") == 0
        samples.append(read_checkpoint(folder / "added-q.pth.tar").entries["sample"])
    assert np.array_equal(*samples)


def test_the_checkpoint_holds_the_network_and_a_sample(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--checkpoint-file", str(folder / "net-q.pth.tar"), "--check-only"]
    assert generate(folder, *words, "--model", f"{folder / 'net.py'}:Net") == 0
    told = capsys.readouterr()
    assert "W041" in told.err + told.out and "No errors in" in told.out


def test_what_it_takes_of_microcontrollers_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = ["--checkpoint-file", str(folder / "net-q.pth.tar")]
    assert generate(folder, *checkpoint) == 0
    (took,) = re.findall(r"([\d,]+) of [\d,]+ bytes of RAM", capsys.readouterr().out)
    with recorded(("ai8xize.py",)) as outcome:
        assert generate(folder, *checkpoint, "--fits") == 0
    assert took in capsys.readouterr().out
    memory = {one["name"]: one["used"] for one in outcome.facts["memory"]}
    assert f"{memory['RAM']:,}" == took and memory["flash"] > 0
    assert outcome.facts["cycles"]["count"] > 0 and outcome.facts["energy"]["value"] > 0


def test_operators_may_call_functions_of_arm(folder: Path) -> None:
    words = ["--device", "CMSIS-NN", "--checkpoint-file", str(folder / "net-q.pth.tar")]
    words += ["--prefix", "arm", "--test-dir", str(folder), "--overwrite"]
    assert main("ai8xize.py", words) == 0
    log = (folder / "arm" / "log.txt").read_text()
    assert "own kernel: the library has no element-wise operations" in log
    if compiler() is not None:
        files = {path.name: path.read_text() for path in (folder / "arm").glob("*.[ch]")}
        assert passed(run_project(files, folder / "run-arm"))


def test_a_graph_becomes_a_container_for_any_firmware(folder: Path) -> None:
    words = ["--checkpoint-file", str(folder / "net-q.pth.tar"), "--container",
             str(folder / "c.nnb"), "--slot", "32K"]  # fmt: skip
    assert generate(folder, *words) == 0
    container = unpack((folder / "c.nnb").read_bytes())
    network = read_checkpoint(str(folder / "net-q.pth.tar")).network
    assert isinstance(network, dict) and verify_vectors(container) == 1
    stated = [
        container.tensors[0].fraction,
        container.tensors[container.layers[-1].output].fraction,
    ]
    assert stated == [network["fraction"], *network["fractions"]]
    assert (folder / "p" / "nnb_program.c").is_file()
    with recorded(("ai8xize.py",)) as outcome:
        assert generate(folder, *words, "--fits") == 0
    memory = {one["name"]: one["used"] for one in outcome.facts["memory"]}
    assert memory["flash"] > 32 << 10 and memory["RAM"] > memory_of((folder / "c.nnb").read_bytes())


def test_the_report_shows_what_each_step_makes_of_the_sample(folder: Path) -> None:
    checkpoint = ["--checkpoint-file", str(folder / "net-q.pth.tar")]
    assert generate(folder, *checkpoint, "--report", str(folder / "r.html")) == 0
    facts = json.loads((folder / "r.json").read_text())
    *_, last = facts["steps"]
    text = (folder / "p/sampledata.h").read_text()
    values = [int(one) for one in re.findall(r"-?\d+", text[text.rindex("{") :])]
    assert (last["result"]["low"], last["result"]["high"]) == (min(values), max(values))
    assert facts["fits"] and all(step["result"] for step in facts["steps"])
    with pytest.raises(NoRoomError):
        generate(folder, *checkpoint, "--report", str(folder / "no.html"), "--l1", "1K")
    assert not json.loads((folder / "no.json").read_text())["fits"]


def test_options_of_descriptions_are_refused(folder: Path) -> None:
    checkpoint = ["--checkpoint-file", str(folder / "net-q.pth.tar")]
    for option, why in ((["--like", "MAX78000"], "no layers of a chip"),
                        (["--no-bias"], "it changes or completes a description"),
                        (["--synthesize-input", "9"], "it changes or completes")):  # fmt: skip
        with pytest.raises(InputError, match=why) as raised:
            generate(folder, *checkpoint, *option)
        assert (raised.value.code, raised.value.place) == ("E080", option[0])


def test_unsound_checkpoints_and_other_samples_are_refused(folder: Path) -> None:
    whole = read_checkpoint(str(folder / "net-q.pth.tar"))
    plan = whole.network
    assert isinstance(plan, dict)
    for key, value in (("nodes", [{}]), ("outputs", [999]), ("left", None), ("fractions", [])):
        damaged = whole.with_entries(**{NETWORK: {**plan, key: value}})
        write_checkpoint(folder / "damaged.pth.tar", Checkpoint(damaged.entries))
        with pytest.raises(InputError, match="no sound network") as raised:
            generate(folder, "--checkpoint-file", str(folder / "damaged.pth.tar"))
        assert raised.value.code == "E744"
    with pytest.raises(InputError, match="2x8x7 whole numbers -128 to 127"):
        generate(folder, "--checkpoint-file", str(folder / "net-q.pth.tar"), "--sample-input",
                 str(folder / "samples.npy"))  # fmt: skip


def test_networks_of_which_little_is_left_are_refused_unless_that_is_accepted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two values that differ by so little are one of 8 bits, and nearly so of 15."""
    (folder / "near.py").write_text(
        "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.conv = nn.Conv2d(2, 1, 1)\n"
        "        self.end = nn.Conv2d(1, 1, 1)\n\n    def forward(self, x):\n"
        "        return self.end((self.conv(x) * 0.00005 + 1).relu())\n"
    )
    weights = {"conv.weight": torch.ones(1, 2, 1, 1), "conv.bias": torch.zeros(1),
               "end.weight": torch.ones(1, 1, 1, 1), "end.bias": torch.zeros(1)}  # fmt: skip
    torch.save(weights, folder / "near.pth")
    with pytest.raises(InputError, match="correlation of 0.* with those of floating") as raised:
        quantize(folder, "near")
    assert raised.value.code == "E760"
    assert quantize(folder, "near", "--least-correlation", "-0.1") == 0
    assert "W759" in capsys.readouterr().err


def test_a_runtime_that_departs_from_the_graph_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of 8 bits saturate in onnxruntime on some processors."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    shapes = [helper.make_tensor_value_info(name, 1, [1, 2, 8, 7]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", shapes[:1], shapes[1:])
    version = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[version], ir_version=8)
    onnx.save(model, folder / "relu.onnx")

    def saturated(path: str, samples: Any) -> list[Any]:
        return [np.minimum(samples, 0.1).clip(0)]

    monkeypatch.setattr(mcu, "optimized", saturated)
    words = [str(folder / "relu.onnx"), str(folder / "relu.pth.tar"), "--device", "MCU"]
    words += ["--calibrate", str(folder / "samples.npy")]
    with pytest.raises(InputError, match=r"with those of onnxruntime \(those of the graph's own"):
        main("quantize.py", words)
    assert main("quantize.py", [*words, "--least-correlation", "0.5"]) == 0


def test_layers_of_ai8x_may_stand_beside_modules_of_torch(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (
        "import ai8x\nfrom torch import nn\n\nclass Net(nn.Module):\n"
        "    def __init__(self, num_classes=6, num_channels=2, dimensions=0, bias=True, **k):\n"
        "        super().__init__()\n"
        "        self.conv = ai8x.FusedConv2dReLU(num_channels, 8, 3, padding=1, bias=bias, **k)\n"
        "        self.norm = nn.BatchNorm2d(8)\n        self.fc = nn.Linear(448, num_classes)\n\n"
        "    def forward(self, x):\n        return self.fc(self.norm(self.conv(x)).flatten(1))\n"
    )
    (folder / "mixed.py").write_text(source)
    space: dict[str, Any] = {"__name__": "mixed"}
    exec(source, space)
    ai8x.set_device(85, False, False, verbose=False)
    state = {"state_dict": space["Net"]().state_dict(), "epoch": 0, "arch": "Net"}
    torch.save(state, folder / "mixed.pth")
    assert quantize(folder, "mixed") == 0
    assert "samples: 0.99" in capsys.readouterr().out


def test_results_that_differ_little_have_more_bits(folder: Path) -> None:
    (folder / "fine.py").write_text(
        "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.conv = nn.Conv2d(2, 1, 1)\n\n"
        "    def forward(self, x):\n        return (self.conv(x) * 0.02).sigmoid()\n"
    )
    weights = {"conv.weight": torch.ones(1, 2, 1, 1), "conv.bias": torch.zeros(1)}
    torch.save(weights, folder / "fine.pth")
    assert quantize(folder, "fine") == 0
    assert generate(folder, "--checkpoint-file", str(folder / "fine-q.pth.tar")) == 0
    network = read_checkpoint(str(folder / "fine-q.pth.tar")).network
    assert isinstance(network, dict)
    (fraction,) = network["fractions"]
    values = [int(n) for n in re.findall(r"-?\d+", (folder / "p/sampledata.h").read_text())]
    assert fraction > 8 and max(values) > 127


def test_graphs_in_whole_numbers_compute_the_rounding_that_they_have(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx = pytest.importorskip("onnx")
    helper, numbers = onnx.helper, onnx.numpy_helper
    random = np.random.default_rng(2)

    def constant(name: str, values: object) -> object:
        return numbers.from_array(np.asarray(values, np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "a", pads=[0, 2, 1, 0], strides=[2, 1]),
        helper.make_node("Div", ["a", "by"], ["b"], "b"),
        helper.make_node("Ceil", ["b"], ["c"], "c"),
        helper.make_node("Clip", ["c", "low", "high"], ["d"], "d"),
        helper.make_node("AveragePool", ["d"], ["e"], "e", kernel_shape=[2, 2], pads=[1, 0, 0, 1]),
        helper.make_node("Floor", ["e"], ["y"], "y"),
    ]
    weights = random.integers(-90, 91, (4, 2, 2, 3))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [1, 2, 8, 7])],
        [helper.make_tensor_value_info("y", 1, None)],
        [constant("w", weights), constant("by", 300), constant("low", -99), constant("high", 88)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "net.onnx")
    words = ["--model", str(folder / "net.onnx")]
    with pytest.raises(InputError, match="needs a sample"):
        generate(folder, *words)
    words += ["--sample-input", str(folder / "sample.npy")]
    assert generate(folder, *words) == 0
    assert "N669" not in capsys.readouterr().err
    calls = ["--device", "CMSIS-NN", "--prefix", "p", "--test-dir", str(folder), "--overwrite"]
    assert main("ai8xize.py", [*calls, *words]) == 0
    assert "own kernel: the library pools within" in (folder / "p" / "log.txt").read_text()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e30])
def test_weights_that_are_no_numbers_are_refused(
    value: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A variance below zero has no root either."""
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NETWORK_FILE)
    namespace: dict[str, Any] = {}
    exec(NETWORK_FILE, namespace)
    net = namespace["Net"]().eval()
    tensor = net.norm.running_var if value == -1e30 else net.first.weight
    tensor.data.view(-1)[0] = value
    torch.save(net.state_dict(), "net.pth")
    pictures = np.random.default_rng(0).integers(0, 256, (8, 2, 8, 8)).astype(np.uint8)
    np.savez("x.npz", x=pictures, y=np.arange(8) % 2)
    words = ["net.pth", "q.pth.tar", "--device", "MCU", "--model", "net.py:Net"]
    with pytest.raises(InputError) as refused:
        main("quantize.py", [*words, "--calibrate", "npz:x.npz"])
    assert refused.value.code == "E507" and not Path("q.pth.tar").exists()


def test_the_remedy_is_not_the_command_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    net = torch.nn.Linear(4, 3)
    for tensor in net.parameters():
        tensor.data *= 1e-20
    torch.save({f"fc.{name}": tensor for name, tensor in net.state_dict().items()}, "net.pth")
    Path("net.py").write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.fc = nn.Linear(4, 3)\n\n"
        "    def forward(self, x):\n        return self.fc(x)\n"
    )
    x = np.random.default_rng(0).uniform(-1, 1, (9, 4)).astype(np.float32)
    np.savez("x.npz", x=x, y=np.arange(9) % 3)
    words = ["net.pth", "q.pth.tar", "--device", "MCU", "--model", "net.py:Net"]
    with pytest.raises(InputError) as refused:
        main("quantize.py", [*words, "--calibrate", "npz:x.npz"])
    assert refused.value.code == "E670" and "quantize.py" not in f"{refused.value.remedy}"
