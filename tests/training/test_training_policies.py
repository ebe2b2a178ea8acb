"""Learning rate schedules and policies of quantization-aware training read from YAML."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import torch
from torch.optim import lr_scheduler

import ai8x
from ai8xtools.commands.train.arguments.converters import policy_file
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.diagnostics.guard import diagnostics_of
from ai8xtools.training.losses.multibox import read_parameters
from ai8xtools.training.policies import schedule_arguments
from ai8xtools.training.policies.qat import check_layers, read_policy, version_of
from ai8xtools.training.policies.schedule import Outcome, read_schedule

ONE = "lr_schedulers: {lr: {class: ExponentialLR, gamma: 0.5}}\npolicies: "
POLICIES = Path(__file__).resolve().parents[2] / "policies"


def _optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 1.0)


def _rates(
    text: str, tmp_path: Path, epochs: int, losses: list[float] | None = None
) -> list[float]:
    """Return the learning rate of each epoch under the schedule in `text`."""
    file = tmp_path / "schedule.yaml"
    file.write_text(text)
    optimizer = _optimizer()
    schedule = read_schedule(str(file)).start(optimizer)
    rates = []
    for epoch in range(epochs):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.end_epoch(epoch, Outcome(losses[epoch] if losses else 0.0, 0.0))
    return rates


def _text(scheduler: str, last: int = 10) -> str:
    return (
        f"lr_schedulers: {{lr: {{{scheduler}}}}}\n"
        "policies: [{lr_scheduler: {instance_name: lr}, "
        f"starting_epoch: 0, ending_epoch: {last}, frequency: 1}}]\n"
    )


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        ("class: MultiStepLR, milestones: [1, 3], gamma: 0.5", [1, 0.5, 0.5, 0.25]),
        ("class: StepLR, step_size: 2, gamma: 0.5", [1, 1, 0.5, 0.5]),
        ("class: ExponentialLR, gamma: 0.5", [1, 0.5, 0.25, 0.125]),
        ("class: CosineAnnealingLR, T_max: 2, eta_min: 0", [1, 0.5, 0, 0.5]),
        ("class: CosineAnnealingWarmRestarts, T_0: 2", [1, 0.5, 1, 0.5]),
        ("class: ConstantLR, factor: 0.5, total_iters: 2", [0.5, 0.5, 1, 1]),
        ("class: LinearLR, start_factor: 0.5, total_iters: 2", [0.5, 0.75, 1, 1]),
        ("class: PolynomialLR, total_iters: 2", [1, 0.5, 0, 0]),
        (
            "class: CyclicLR, base_lr: 1, max_lr: 2, step_size_up: 2, cycle_momentum: false",
            [1, 1.5, 2, 1.5],
        ),
        (
            "class: OneCycleLR, max_lr: 1, total_steps: 5, div_factor: 2, pct_start: 0.5, "
            "anneal_strategy: linear, cycle_momentum: false",
            [0.5, 5 / 6, 0.80001, 0.40003],
        ),
    ],
)
def test_schedulers_act_from_the_epoch_they_name(
    scheduler: str, expected: list[float], tmp_path: Path
) -> None:
    assert _rates(_text(scheduler), tmp_path, 4) == pytest.approx(expected)


def test_plateau_follows_the_validation_loss(tmp_path: Path) -> None:
    text = _text("class: ReduceLROnPlateau, patience: 0, factor: 0.1")
    assert _rates(text, tmp_path, 4, [1.0, 0.5, 0.7, 0.4]) == pytest.approx([1, 1, 1, 0.1])


def test_plateau_of_accuracy_follows_the_accuracy(tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_text(_text("class: ReduceLROnPlateau, patience: 0, factor: 0.1, mode: max"))
    optimizer = _optimizer()
    schedule = read_schedule(str(file)).start(optimizer)
    for epoch, accuracy in enumerate((50.0, 60.0, 60.0)):
        schedule.end_epoch(epoch, Outcome(1.0, accuracy))
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)


def test_every_scheduler_of_pytorch_is_offered_or_refused_with_a_reason() -> None:
    kinds = {
        name
        for name, kind in vars(lr_scheduler).items()
        if isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler)
    } - {"LRScheduler", "_LRScheduler"}
    assert kinds <= {*schedule_arguments.SCHEDULERS, *schedule_arguments.REFUSED_CLASSES}
    for name, arguments in schedule_arguments.SCHEDULERS.items():
        taken = inspect.signature(getattr(lr_scheduler, name)).parameters
        assert set(arguments) <= set(taken), name


def test_one_cycle_that_is_over_is_named(tmp_path: Path) -> None:
    text = _text("class: OneCycleLR, max_lr: 1, total_steps: 2, cycle_momentum: false")
    with pytest.raises(InputError, match="cannot step after epoch 2"):
        _rates(text, tmp_path, 4)


def test_rate_of_the_loss_has_its_own_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_text(
        "loss_lr_schedulers: {a: {class: ExponentialLR, gamma: 0.5}}\n"
        "policies: [{loss_lr_scheduler: {instance_name: a}, epochs: [0]}]\n"
    )
    model, loss = _optimizer(), _optimizer()
    schedule = read_schedule(str(file)).start(model, of_loss=loss)
    schedule.use(_optimizer())
    loss.step()
    schedule.end_epoch(0, Outcome(0.0, 0.0))
    assert model.param_groups[0]["lr"] == 1
    assert loss.param_groups[0]["lr"] == 0.5


def test_policy_ends_before_its_ending_epoch(tmp_path: Path) -> None:
    text = _text("class: ExponentialLR, gamma: 0.5", last=1)
    assert _rates(text, tmp_path, 3) == pytest.approx([1, 0.5, 0.5])


def test_resumed_schedule_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_text(_text("class: MultiStepLR, milestones: [2], gamma: 0.5"))
    optimizer = _optimizer()
    optimizer.param_groups[0]["initial_lr"] = 1.0
    schedule = read_schedule(str(file)).start(optimizer, done=[None])
    optimizer.step()
    schedule.end_epoch(1, Outcome(0.0, 0.0))
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_schedule_cannot_begin_in_the_middle_of_a_run(tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_text(_text("class: ExponentialLR, gamma: 0.5"))
    with pytest.raises(InputError, match="began without a schedule"):
        read_schedule(str(file)).start(_optimizer(), done=[None])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr_schedulers: {lr: {class: FooLR}}", "FooLR"),
        ("lr_schedulers: {lr: {class: StepLR, step: 2}}", "unknown key 'step'"),
        ("lr_schedulers: {lr: {class: StepLR}}", "step_size"),
        ("policies: [{lr_scheduler: {instance_name: x}}]", "no lr_scheduler 'x'"),
        ("pruners: {}", "pruners cannot be used: weights that are zero save nothing"),
        ("regularizers: {}", "regularizers cannot be used"),
        ("quantizers: {}", "quantizers cannot be used: weights are quantized as"),
        ("extensions: {}", "extensions cannot be used"),
        ("policies: [{pruner: {instance_name: a}, epochs: [1]}]", "pruner cannot be used"),
        ("sections: {}", "unknown key 'sections'"),
        ("lr_schedulers: {lr: {class: LambdaLR}}", "which takes a function"),
        ("lr_schedulers: {lr: {class: SequentialLR}}", "list a policy for each"),
        ("lr_schedulers: {lr: {class: MultiStepMultiGammaLR}}", "list a MultiStepLR for each"),
        ("loss_lr_schedulers: {a: {class: ExponentialLR, gamma: 0.5}}", "only with --dr"),
        (f"{ONE}[{{loss_lr_scheduler: lr, epochs: [1]}}]", "no loss_lr_scheduler 'lr'"),
        (f"{ONE}[{{lr_scheduler: {{instance_name: lr, args: {{a: 1}}}}, epochs: [1]}}]", "no args"),
        (_text("class: LinearLR, start_factor: 0"), "PyTorch refuses its arguments"),
        (_text("class: OneCycleLR, max_lr: 1, total_steps: 3, three_phase: 1"), "true or false"),
        ("lr_schedulers: [1]", "lr_schedulers is [1]"),
        ("lr_schedulers: {lr: {class: [a]}}", "lr has the class ['a']"),
        ("policies: 3", "policies is 3; it must be a list"),
        ("policies: [{lr_scheduler: {instance_name: [a]}}]", "no lr_scheduler ['a']"),
        (_text("class: StepLR, step_size: 0"), "step_size is 0; it must be a whole number from 1"),
        (_text("class: StepLR, step_size: a"), "step_size is 'a'"),
        (_text("class: StepLR, step_size: 2, gamma: 1e-1"), "gamma is '1e-1'"),
        (_text("class: StepLR, step_size: true"), "step_size is true"),
        (_text("class: StepLR, step_size: 2, last_epoch: 1"), "unknown key 'last_epoch'"),
        (_text("class: CosineAnnealingLR, T_max: 0"), "T_max is 0"),
        (_text("class: MultiStepLR, milestones: [a]"), "milestones is ['a']; it must be a list of"),
        (_text("class: ReduceLROnPlateau, factor: 1"), "a number from 0, below 1"),
        (_text("class: ReduceLROnPlateau, mode: mean"), "it must be min or max"),
        (_text("class: ExponentialLR, gamma: .nan"), "gamma is .nan"),
        (f"{ONE}[{{lr_scheduler: lr, epochs: 3}}]", "epochs is 3; it must be a list of whole"),
        (f"{ONE}[{{lr_scheduler: lr, starting_epoch: 1}}]", "ending_epoch is missing"),
        ("- 1", "keys with values"),
        ("a: [", "not valid YAML"),
    ],
)
def test_faults_of_a_schedule_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as info:
        _rates(text, tmp_path, 1)
    told = [one for one in (info.value, *info.value.others) if message in one.message]
    assert [one.code for one in told] == ["E603"]
    assert str(told[0].place).startswith(str(tmp_path / "schedule.yaml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weight_bits: 8", "start_epoch is missing"),
        ("start_epoch: -1\nweight_bits: 8", "start_epoch is -1"),
        ("start_epoch: 3\nweight_bits: 5", "weight_bits of the policy is 5"),
        ("start_epoch: 3\nweight_bits: 8\nshift_quantile: 1.5", "shift_quantile is 1.5"),
        ("start_epoch: 3\nweight_bits: true", "weight_bits of the policy is true"),
        ("start_epoch: 3\nweight_bits: 8\nshift_quantile: true", "shift_quantile is true"),
        ("start_epoch: 3\nweight_bits: 8\nweight_bits: 4", "the key weight_bits occurs twice"),
        ("start_epoch: 3\nweight_bits: 8\nstart: 3", "unknown key 'start'"),
        ("start_epoch: 3\nweight_bits: 8\noverrides: {fc: 4}", "fc must hold weight_bits"),
        ("start_epoch: 3\nweight_bits: 8\noverrides: {fc: {weight_bits: 3}}", "fc is 3"),
    ],
)
def test_faults_of_a_qat_policy_are_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "qat.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as info:
        read_policy(str(file))
    assert info.value.code == "E604"


def test_every_fault_of_a_qat_policy_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "qat.yaml"
    file.write_text(
        "# a policy\nstart_epoc: 3\nweight_bits: 3\nshift_quantile: 1e-1\noverrides:\n"
        "  conv1:\n    weigth_bits: 5\n  fc: 8\n  fc: 9\n"
    )
    with pytest.raises(InputError) as info:
        read_policy(str(file))
    told = [str(d).removeprefix(f"{file}:") for d in diagnostics_of(info.value)]
    assert [text.split(" [")[0] for text in told] == [
        "2:1: error: unknown key 'start_epoc' in the policy",
        "3:1: error: weight_bits of the policy is 3; it must be 1, 2, 4 or 8",
        "4:1: error: shift_quantile is '1e-1'; it must be above 0, at most 1",
        "7:5: error: unknown key 'weigth_bits' in overrides: conv1",
        "7:5: error: weight_bits of overrides: conv1 is 5; it must be 1, 2, 4 or 8",
        "9:3: error: the key fc occurs twice, first in line 8",
        "9:3: error: overrides: fc must hold weight_bits or shift_quantile, not 9",
    ]
    assert "Did you mean 'start_epoch'?" in told[0] and "without quotes" in told[2]


def test_every_fault_of_a_schedule_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_text(
        "lr_schedulers:\n  one:\n    clas: MultiStepLR\n    milestones: [100, x]\n"
        "  two:\n    class: MultiStepRL\n    gama: 0.1\n    milestones: []\npolices:\n"
        "  - lr_scheduler:\n      instance_name: ones\n    starting_epoch: x\n    frequency: 0\n"
    )
    with pytest.raises(InputError) as info:
        read_schedule(str(file))
    found = [str(d).removeprefix(f"{file}:") for d in diagnostics_of(info.value)]
    told = [re.split(":[0-9]+: error: ", text) for text in found]
    assert [int(number) for number, _ in told] == [3, 4, 6, 7, 9, 10, 11, 12, 13]
    for (_, text), words in zip(
        told,
        (
            "mean 'class'", "[100, 'x']", "mean MultiStepLR?", "mean 'gamma'", "mean 'policies'",
            "ending_epoch is missing", "mean one?", "starting_epoch is 'x'", "frequency is 0",
        ),
        strict=True,
    ):  # fmt: skip
        assert words in text


def test_override_of_a_layer_that_does_not_exist_is_refused() -> None:
    ai8x.set_device(85, False, False, verbose=False)
    model = torch.nn.Sequential(ai8x.Conv2d(1, 1, 3))
    with pytest.raises(InputError, match="'conv9'"):
        check_layers({"overrides": {"conv9": {"weight_bits": 2}}}, model, "policy")


def test_missing_files_are_named(tmp_path: Path) -> None:
    for read in (read_policy, read_schedule):
        with pytest.raises(InputError, match="no such file"):
            read(str(tmp_path / "absent.yaml"))


def test_shipped_files_are_valid() -> None:
    for file in POLICIES.glob("qat_policy*.yaml"):
        read_policy(str(file))
    for file in POLICIES.glob("schedule*.yaml"):
        read_schedule(str(file))
    for file in POLICIES.glob("obj_detection_params*.yaml"):
        read_parameters(str(file))


def test_policies_of_the_same_name_stand_beside_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = str(POLICIES / "schedule-catsdogs.yaml")
    assert policy_file("policies/schedule-catsdogs.yaml") == shipped
    assert policy_file("parameters/schedule-catsdogs.yaml") == shipped
    assert policy_file("schedule-catsdogs.yaml") == "schedule-catsdogs.yaml"
    assert policy_file("policies/absent.yaml") == "policies/absent.yaml"
    own = tmp_path / "policies" / "schedule-catsdogs.yaml"
    own.parent.mkdir()
    own.touch()
    assert policy_file("policies/schedule-catsdogs.yaml") == "policies/schedule-catsdogs.yaml"


def test_schedulers_that_never_act_are_found(tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_text(_text("class: ExponentialLR, gamma: 0.5", last=0))
    assert read_schedule(str(file)).idle(5) == ["lr"]
    file.write_text(_text("class: ExponentialLR, gamma: 0.5", last=1))
    assert read_schedule(str(file)).idle(5) == []


def test_keys_of_the_second_generation(tmp_path: Path) -> None:
    file = tmp_path / "qat.yaml"
    text = "start_epoch: 3\nweight_bits: 8\noverrides: {conv1: {shift_quantile: 0.99}}\n"
    file.write_text(text)
    policy = read_policy(str(file))
    assert policy["overrides"] == {"conv1": {"shift_quantile": 0.99}}
    assert version_of(policy) == 1
    file.write_text(text + "outlier_removal_z_score: 2\n")
    assert version_of(read_policy(str(file))) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("outlier_removal_z_score: 0", "outlier_removal_z_score is 0"),
        ("outlier_removal_z_score: [2]", "outlier_removal_z_score is"),
        ("overrides: {conv1: {shift_quantile: 2}}", "of overrides: conv1 is 2"),
    ],
)
def test_faults_of_keys_of_the_second_generation(line: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "qat.yaml"
    file.write_text(f"start_epoch: 3\nweight_bits: 8\n{line}\n")
    with pytest.raises(InputError, match=re.escape(message)):
        read_policy(str(file))
