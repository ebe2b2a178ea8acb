"""Low-bit networks: torch computes what the engine computes, and the way to a header."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from ai8xtools.commands.lowbit.convert import network_of
from ai8xtools.commands.lowbit.data import pictures_of
from ai8xtools.commands.lowbit.files import read, read_teacher, save
from ai8xtools.commands.targets import main
from ai8xtools.commands.targets.arguments import select
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.lowbit import ENCODINGS, encode
from ai8xtools.software.lowbit.engine import run
from ai8xtools.software.lowbit.header import read_header
from ai8xtools.software.lowbit.network import Rule
from ai8xtools.software.lowbit.requantize import requantize as exact
from ai8xtools.training.lowbit.activations import ActivationRule, requantize, whole
from ai8xtools.training.lowbit.averaging import WeightAverage
from ai8xtools.training.lowbit.epochs import Epochs, Pictures
from ai8xtools.training.lowbit.loop import EpochResult, _rate, evaluate, train
from ai8xtools.training.lowbit.matrices import optimizers_of
from ai8xtools.training.lowbit.network import LowBitNetwork
from ai8xtools.training.lowbit.pictures import PictureAugmentation, augmented, codes, reduced
from ai8xtools.training.lowbit.recipe import MODELS, Recipe, read_recipe
from ai8xtools.training.lowbit.teacher import Mixture
from ai8xtools.training.lowbit.weights import integer_weights

RULES = [
    ActivationRule(kind, bits, rounds, limit)
    for (kind, bits), rounds, limit in itertools.product(
        [("shift", 0), ("reciprocal", 8), ("reciprocal", 3)], [False, True], [15, 127]
    )
] + [ActivationRule("max", 0, rounds, 15) for rounds in (False, True)]


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("fine", [False, True])
def test_weights_of_training_are_the_integers_of_the_codes(name: str, fine: bool) -> None:
    weights = torch.randn((40, 64), generator=torch.Generator().manual_seed(1)) * 0.1
    encoding = ENCODINGS[name]
    table = np.array(encoding.table if fine else encoding.values)
    found = integer_weights(weights, torch.tensor(0.21), encoding, fine)
    assert np.array_equal(found.numpy(), table[encode(weights.numpy(), 0.21, encoding)])


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("group", [1, 4])
def test_activations_of_training_are_those_of_the_engine(rule: ActivationRule, group: int) -> None:
    random = np.random.default_rng(2)
    sums = random.integers(-(2**20), 2**20, (12, 30)) >> random.integers(0, 21, (12, 1))
    sums[3] = -5
    want = exact(sums, Rule(rule.kind, rule.bits, rule.rounds, rule.limit, group))  # type: ignore[arg-type]
    found = requantize(torch.from_numpy(sums).float(), rule, group)
    assert np.array_equal(found.numpy(), want.values)


def recipes() -> list[Recipe]:
    """Return small networks of every kind."""
    return [
        Recipe(widths=(12, 10), encodings=("2bitsym", "4bit", "FP130"), act_bits=8),
        Recipe(widths=(20,), encoding="Ternary"),
        Recipe(widths=(9,), encoding="NF4", act_bits=4, act_mantissa="recip8", act_round=False),
        Recipe(widths=(12, 8), prune_epoch=1, prune_totalgroups=6, prune_groupstoprune=2),
        Recipe(model="ai85cnnbit", cnn_width=4, widths=(8,)),
        Recipe(model="ai85winbit", windows=9, window_widths=(8, 4), widths=(8,), encoding="NF2",
               act_bits=4, act_mantissa="max"),
        Recipe(model="ai85winbit", windows=4, window_widths=(6,), widths=(8,), shared=False,
               shared_scale=False, encoding="sint4"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "recipe", recipes(), ids=lambda recipe: f"{recipe.model}-{recipe.encoding}"
)
def test_a_trained_network_becomes_a_header_with_the_same_classes(
    recipe: Recipe, tmp_path: Path
) -> None:
    torch.manual_seed(3)
    random = torch.Generator().manual_seed(4)
    images = (torch.rand((64, 1, 28, 28), generator=random) * 255).byte()
    images[:, :, :, ::2] = 0
    data = Pictures(images, torch.randint(0, 10, (64,), generator=random))
    network = LowBitNetwork(recipe.architecture(10))
    short = Recipe(**{**vars_of(recipe), "epochs": 2, "batch_size": 16})
    train(network, short, data, data, 0, lambda _: None)
    path = tmp_path / "net.pth.tar"
    save(path, network, short, tuple("0123456789"))
    assert main("quantize.py", [str(path), str(tmp_path / "net.h"), "--device", "BITNET"]) == 0
    engine = read_header(str(tmp_path / "net.h"))
    inputs = codes(reduced(images))
    with torch.no_grad():
        found = network(inputs)
    want = run(engine, inputs.numpy().astype(np.int8))
    sums = want.layers[-1].sums
    assert np.array_equal(found.argmax(1).numpy(), want.classes)
    ratio = found.numpy() / np.where(sums == 0, np.nan, sums)
    assert np.nanmax(ratio) == pytest.approx(np.nanmin(ratio), rel=1e-4), "one factor for all"


@pytest.mark.parametrize("norm", ["RMS", "Lin", "LayerNorm", "BatchNorm", "None"])
@pytest.mark.parametrize("per_output", [False, True])
def test_networks_with_norms_learn(norm: str, per_output: bool) -> None:
    torch.manual_seed(3)
    random = torch.Generator().manual_seed(4)
    labels = torch.arange(200) % 4
    images = (torch.rand((200, 1, 16, 16), generator=random) * 60).byte()
    for label in range(4):
        images[labels == label, :, 4 * label : 4 * label + 4] += 150
    recipe = Recipe(widths=(12,), norm=norm, per_output=per_output, lr=0.01, epochs=6,
                    batch_size=20, augmentation=False)  # fmt: skip
    network = LowBitNetwork(recipe.architecture(4))
    data, seen = Pictures(images, labels), []
    train(network, recipe, data, data, 0, lambda found: seen.append(found.correct))
    assert seen[-1] > 190


def test_averages_are_those_of_all_steps_first_and_then_fall_exponentially() -> None:
    network = LowBitNetwork(Recipe(widths=(4,)).architecture(10))
    average = WeightAverage(network, 0.75)
    for value in (8.0, 4.0, 0.0, 8.0, 16.0):
        with torch.no_grad():
            network.gain.fill_(value)
        average.step()
    expected = 0.75 * (0.75 * (8 + 4 + 0) / 3 + 0.25 * 8) + 0.25 * 16
    assert float(average.network.gain.detach()) == pytest.approx(expected)
    average.restart()
    average.step()
    assert float(average.network.gain.detach()) == 16


def test_an_average_is_evaluated_and_becomes_the_result() -> None:
    random = torch.Generator().manual_seed(4)
    images = (torch.rand((48, 1, 16, 16), generator=random) * 255).byte()
    data = Pictures(images, torch.randint(0, 10, (48,), generator=random))

    def trained(average: float, epochs: int = 3) -> tuple[LowBitNetwork, list[EpochResult]]:
        torch.manual_seed(3)
        recipe = Recipe(widths=(12,), lr=0.01, epochs=epochs, batch_size=16, average=average,
                        prune_epoch=1, prune_totalgroups=6, prune_groupstoprune=2)  # fmt: skip
        network = LowBitNetwork(recipe.architecture(10))
        told: list[EpochResult] = []
        train(network, recipe, data, data, 0, told.append)
        return network, told

    (plain, losses), (averaged, told) = trained(0.0), trained(0.9)
    assert [one.loss for one in told] == [one.loss for one in losses], "the same training"
    correct = evaluate(averaged, codes(reduced(images)), data.labels)
    assert correct == told[-1].correct, "what is evaluated is the result"
    assert sorted(averaged.mask.tolist()) == [0, 0, 1, 1, 1, 1]
    for one, other in zip(plain.quantizers(), averaged.quantizers(), strict=True):
        assert not torch.equal(one.weight, other.weight) and one.s != other.s


@pytest.mark.parametrize("encoding", ["5bitsym", "None"])
def test_encodings_of_training_only_learn(encoding: str) -> None:
    recipe = Recipe(widths=(12,), encoding=encoding, clip_init=True)
    network = LowBitNetwork(recipe.architecture(4))
    layer = network.layers[0]
    layer.update_clip("octav", 0.25)  # type: ignore[operator,union-attr]
    found = layer.integers(False)  # type: ignore[operator,union-attr]
    found.sum().backward()
    whole = (found % 2 == 1).all() and 1 <= found.abs().max() <= 31
    assert bool(whole) is (encoding == "5bitsym") and layer.weight.grad is not None  # type: ignore[union-attr]


def test_names_with_slips_lead_to_those_that_were_meant(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("maxw_algo: Octave\nencodings: [NF5, 8bits, NF2, NF4]\n")
    with pytest.raises(InputError) as refused:
        read_recipe(str(tmp_path / "policy.yaml"))
    errors = (refused.value, *refused.value.others)
    remedies = [str(error.remedy).partition("?")[0] for error in errors]
    assert remedies == [f"Did you mean '{name}'" for name in ("octav", "NF4", "8bit")]


@pytest.mark.parametrize("rate", [float("inf"), 1e38])
def test_trainings_that_diverge_end(rate: float) -> None:
    data = Pictures(torch.full((32, 1, 16, 16), 200, dtype=torch.uint8), torch.arange(32) % 10)
    data.images[:, :, ::2] = 0
    recipe = Recipe(widths=(4,), lr=rate, epochs=3, batch_size=4, augmentation=False)
    with pytest.raises(InputError, match="the loss of epoch . is not finite"):
        train(LowBitNetwork(recipe.architecture(10)), recipe, data, data, 0, lambda _: None)


def test_rates_follow_the_scheduler() -> None:
    warm = Recipe(scheduler="CosineWarmRestarts", step_size=10)
    assert _rate(warm, 10) == 1 and _rate(warm, 9.99) < 0.01
    assert _rate(Recipe(scheduler="StepLR", halve_lr_epoch=15), 20) == pytest.approx(0.005)


@pytest.mark.parametrize("shared", [True, False])
def test_muon_takes_each_matrix_of_hidden_weights(shared: bool) -> None:
    torch.manual_seed(5)
    windows = {"windows": 4, "window_widths": (6,), "shared": shared, "shared_scale": shared}
    recipe = Recipe("ai85winbit", "8bit", widths=(8,), optimizer="Muon", muon_lr=0.5, **windows)
    network = LowBitNetwork(recipe.architecture(10))
    optimizers = optimizers_of(network, recipe)
    held = [{id(p) for g in one.param_groups for p in g["params"]} for one, _ in optimizers]
    assert held[0] == {id(network.layers[1].weight), id(network.gain)}, "Adam: the head and gain"
    hidden = [network.stem[0].weight, network.layers[0].weight]
    before = [weight.detach().clone() for weight in hidden]
    network(torch.arange(512.0).reshape(2, 256) % 100)[:, 0].sum().backward()
    optimizers[1][0].step()
    for weight, old in zip(hidden, before, strict=True):
        for moved in (weight - old).reshape(-1, *weight.shape[-2:]) / 0.5:
            assert float(moved.detach().norm(2)) < 1.5 * len(moved) ** 0.5, "near to orthogonal"
            assert bool(moved.any())


def test_steps_to_whole_numbers_pass_the_gradient_of_those_above_zero() -> None:
    values = torch.tensor([-1.5, 0.0, 1.0, 2.75], requires_grad=True)
    found = whole(values)
    found.sum().backward()
    assert found.tolist() == [0, 0, 1, 2] and values.grad is not None
    assert values.grad.tolist() == [0, 0, 1, 1]


def vars_of(recipe: Recipe) -> dict[str, Any]:
    """Return the fields of a recipe."""
    return {name: getattr(recipe, name) for name in Recipe.__dataclass_fields__}


def test_pictures_are_reduced_as_pillow_does() -> None:
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (20, 28, 28)).astype(np.uint8)
    want = [Image.fromarray(x).resize((16, 16), Image.Resampling.BILINEAR) for x in images]
    found = reduced(torch.from_numpy(images)[:, None])
    assert np.array_equal(found[:, 0].numpy(), np.stack([np.asarray(x) for x in want]))


def test_deformed_pictures_are_fresh_and_follow_the_seed() -> None:
    image = torch.zeros((2, 1, 28, 28), dtype=torch.uint8)
    image[:, :, 6:22, 12:16] = 255
    how = PictureAugmentation(elastic=1.0)
    one, other = (augmented(image, how, torch.Generator().manual_seed(s)) for s in (0, 1))
    assert torch.equal(one, augmented(image, how, torch.Generator().manual_seed(0)))
    assert not torch.equal(one, other) and not torch.equal(one[0], one[1])
    assert one.shape == (2, 256) and one.abs().max() <= 127


def test_hyperparameters_of_others_are_read_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "theirs.yaml"
    file.write_text(
        "model: FCMNIST\nQuantType: 2bitsym\nNormType: RMS\nWScale: PerTensor\nmaxw_algo: octav\n"
        "maxw_update_until_epoch: 50\nnum_epochs: 60\nbatch_size: 64\nscheduler: Cosine\n"
        "learning_rate: 0.001\nnetwork_width1: 112\nnetwork_width2: 96\nnetwork_width3: 0\n"
        "runtag: opt\naugmentation: True\nrotation1: 10\n"
    )
    found = read_recipe(str(file))
    assert (found.model, found.encoding, found.widths) == ("ai85fcbit", "2bitsym", (112, 96))
    assert (found.epochs, found.batch_size, found.clip_until_epoch) == (60, 64, 50)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("encoding: 3bitsym\n", "encoding is '3bitsym'"),
        ("WScale: PerOutput\n", "one scale for each output (WScale: PerOutput) needs a norm"),
        ("WScale: PerInput\n", "WScale is 'PerInput'; it must be PerTensor or PerOutput"),
        ("NormType: RMS\nact_bits: 4\n", "the norm RMS is for dense layers"),
        ("widths: 64\n", "widths is 64; it must be a list of whole numbers"),
        ("widths: [0]\n", "widths is not from 1 to 4096"),
        ("encodings: [NF4]\n", "encodings has 1 names for 4 layers"),
        ("act_mantissa: recip99\n", "act_mantissa is 'recip99'"),
        ("lr: .nan\n", "lr is .nan; it must be a number"),
        ("lr: -1\n", "must be above 0"),
        ("prune_epoch: 10\n", "32 of 96 groups of 64 outputs cannot be pruned"),
        ("prune_epoch: 60\n", "prune_epoch is 60, behind the last epoch"),
        ("first_layer_act_bits: 4\n", "first_layer_act_bits is 4; it must be 8"),
        ("enocding: NF4\n", "unknown key 'enocding' in the policy"),
        ("distillation: 2\n", "distillation is not from 0 to 1"),
        ("model: FCMNSIT\n", "model is 'FCMNSIT'"),
        ("QuantType: 4bitsm\n", "QuantType is '4bitsm'"),
        ("num_epochs: 0\n", "num_epochs is not from 1 to 4096, but 0"),
        ("num_epochs: 4\nepochs: 4\n", "num_epochs and epochs say the same"),
        ("elastictransformprobability: 3\n", "elastictransformprobability is not from 0 to 1"),
        ("rotation1: -1000\n", "rotation1 is not from 0 to 180"),
        ("muon_momentum: 7\n", "muon_momentum is not from 0 to 0.99999"),
        ("average: 1\n", "average is not from 0 to 0.99999"),
        ("augmentation_pool: 65\n", "augmentation_pool is not from -1 to 64"),
        ("network_width1: x\n", "network_width1 is 'x'; it must be a number up to 4096"),
    ],
)
def test_policies_with_mistakes_are_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        read_recipe(str(file))
    assert refused.value.code == "E604" and message in refused.value.message


def test_a_network_is_trained_and_evaluated_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text("widths: [16]\naugmentation: false\n")
    command = ["--model", "ai85fcbit", "--dataset", "digits", "--out-dir", "logs", "--name", "x"]
    assert main("train.py", [*command, "--qat-policy", str(policy), "--epochs", "3"]) == 0
    (file,) = tmp_path.glob("logs/*/x_lowbit.pth.tar")
    printed = capsys.readouterr().out
    last = next(word for word in reversed(printed.split("Top1:")) if word.strip()).split()[0]
    evaluating = ["--evaluate", "--exp-load-weights-from", str(file)]
    assert main("train.py", ["--model", "ai85fcbit", "--dataset", "digits", *evaluating]) == 0
    assert f"Top1: {last}" in capsys.readouterr().out
    going_on = [*command, "--exp-load-weights-from", str(file), "--epochs", "1", "--lr", "1e-9"]
    assert main("train.py", [*going_on, "--qat-policy", str(policy)]) == 0
    assert f"Top1: {last}" in capsys.readouterr().out
    policy.write_text("widths: [24]\naugmentation: false\n")
    with pytest.raises(InputError, match="does not fit the policy"):
        main("train.py", [*going_on, "--qat-policy", str(policy)])


def test_pictures_in_folders_become_grey_bytes(tmp_path: Path) -> None:
    for part, kind, shade in itertools.product(("train", "test"), "ab", (40, 90)):
        (tmp_path / part / kind).mkdir(parents=True, exist_ok=True)
        colours = np.full((20, 32, 3), shade + 100 * (kind == "b"), np.uint8)
        Image.fromarray(colours).save(tmp_path / part / kind / f"{shade}.png")
    training, test, classes = pictures_of(f"folder:{tmp_path}", ".", training=True)
    assert classes == ("a", "b") and training.images.shape == test.images.shape == (4, 1, 28, 28)
    assert sorted(test.images.flatten(1).unique().tolist()) == [40, 90, 140, 190]
    assert codes(reduced(test.images)).shape == (4, 256)


def test_teachers_are_trained_and_taken_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text("widths: [8]\nteacher_epochs: 1\nteacher_width: 3\nepochs: 1\ndropout: 0.1\n")
    for number, picture in enumerate(np.random.default_rng(0).integers(0, 256, (40, 28, 28))):
        place = tmp_path / "few" / str(number % 10)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.astype(np.uint8)).save(place / f"{number}.bmp")
    command = ["--model", "ai85fcbit", "--dataset", "folder:few", "--qat-policy", str(policy)]
    assert main("train.py", [*command, "--out-dir", "one", "--name", "x"]) == 0
    (teacher,) = tmp_path.glob("one/*/x_teacher.pth.tar")
    (one,) = tmp_path.glob("one/*/x_lowbit.pth.tar")
    policy.write_text("widths: [6]\nepochs: 1\n")
    assert (
        main("train.py", [*command, "--out-dir", "two", "--teacher", str(teacher), str(one)]) == 0
    )
    assert capsys.readouterr().out.count("Training the teacher") == 1
    (two,) = tmp_path.glob("two/*/lowbit.pth.tar")
    assert read(str(one)).classes == read(str(two)).classes
    for file in (teacher, one):
        with pytest.raises(InputError, match="was trained for the classes 0, 1") as refused:
            read_teacher(str(file), tuple("012345678x"))
        assert refused.value.code == "E726"


def test_files_that_hold_no_teacher_are_refused(tmp_path: Path) -> None:
    path, classes = tmp_path / "teacher.pth.tar", ("a", "b")
    for state in ({"w": torch.ones(1)}, {"body.0.weight": torch.ones(())}):
        torch.save({"state_dict": state, "arch": "lowbit_teacher", "epoch": 0}, path)
        with pytest.raises(InputError, match="does not fit a teacher of 2 classes") as refused:
            read_teacher(str(path), classes)
        assert refused.value.code == "E726"
    network = LowBitNetwork(Recipe(widths=(4,)).architecture(2))
    save(path, network, Recipe(widths=(5,)), classes)
    with pytest.raises(InputError, match="does not fit the recipe"):
        read_teacher(str(path), classes)


def test_teachers_are_averaged_as_probabilities() -> None:
    teachers, codes = [torch.nn.Linear(256, 3) for _ in range(3)], torch.randn(5, 256) * 9
    mixture = Mixture(teachers, temperature=2.0)
    expected = sum((teacher(codes) / 2).softmax(1) for teacher in teachers) / 3
    torch.testing.assert_close((mixture(codes) / 2).softmax(1), expected)


def test_dropout_is_for_training_alone() -> None:
    data = torch.randint(-128, 128, (4, 256), generator=torch.Generator().manual_seed(0))
    network = LowBitNetwork(Recipe(widths=(40,), dropout=0.5).architecture(10))
    assert not torch.equal(network(data), network(data))
    evaluate(network, data, torch.zeros(4))
    assert torch.equal(network(data), network(data))


def test_copies_of_a_pool_come_again_and_fresh_ones_do_not() -> None:
    images = torch.zeros((3, 1, 28, 28), dtype=torch.uint8)
    images[:, :, 6:22, 12:16] = 255
    data = Pictures(images, torch.arange(3))
    for pool, again in ((2, True), (0, False)):
        recipe = Recipe(augmentation_pool=pool)
        epochs = Epochs(data, recipe, torch.Generator().manual_seed(0))
        first, second, third = (epochs.samples(i)[0].codes for i in range(3))
        assert not torch.equal(first, second) and torch.equal(first, third) is again


def test_only_the_model_leads_to_this_training() -> None:
    def chosen(*words: str) -> str:
        return select("train.py", words).names[0]

    assert {chosen("--model", name) for name in MODELS} == {"BITNET"}
    assert chosen("-a=ai85winbit") == chosen("--device=bitnet") == "BITNET"
    assert chosen("--model", "ai85net5", "--name", "my-ai85fcbit") == "MAX78000"
    assert chosen("--model", "ai85net5", "--name", "ai85fcbit") == "MAX78000"


def test_checkpoints_of_other_networks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.pth.tar"
    torch.save({"state_dict": {"conv.weight": torch.ones(1)}, "arch": "x", "epoch": 0}, path)
    with pytest.raises(InputError) as refused:
        read(str(path))
    assert "no checkpoint of a low-bit network" in refused.value.message


def test_weights_of_zero_are_refused(tmp_path: Path) -> None:
    recipe = Recipe(widths=(4,))
    network = LowBitNetwork(recipe.architecture(10))
    with torch.no_grad():
        network.layers[0].weight.zero_()  # type: ignore[union-attr,operator]
    save(tmp_path / "zero.pth.tar", network, recipe, tuple("0123456789"))
    with pytest.raises(InputError) as refused:
        network_of(read(str(tmp_path / "zero.pth.tar")), "zero.pth.tar")
    assert "layers.0: all weights are zero" in refused.value.message
