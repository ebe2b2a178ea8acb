"""A run of train.py from its options to its results.

Source: docs/training.md, "What happens in a run".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.diagnostics.outcome import note, suggest
from ai8xtools.frontends.modules.foreign import refuse_foreign
from ai8xtools.training import display, export
from ai8xtools.training.catalog.discovery import DatasetEntry, ModelEntry, choose, find_models
from ai8xtools.training.catalog.imported import completed, imported, notes_of, plain_state
from ai8xtools.training.catalog.own_data import dataset_of
from ai8xtools.training.catalog.own_file import is_file_and_class, named_model, plain_name
from ai8xtools.training.compute.devices import (
    compiles,
    compute_device,
    explained,
    forward_of,
    set_deterministic,
)
from ai8xtools.training.compute.distributed import (
    UNDIVIDED,
    Share,
    connected,
    normalize_together,
    share_of_process,
)
from ai8xtools.training.compute.randomness import new_seed, seed_everything
from ai8xtools.training.data.batches import Data, load_data
from ai8xtools.training.data.inputs import check_input, check_shape
from ai8xtools.training.data.sample_file import save_sample
from ai8xtools.training.loop import exits
from ai8xtools.training.loop.averaging import Average
from ai8xtools.training.loop.epochs import Pass, layout_of, measure
from ai8xtools.training.loop.judgement import Integers, judge
from ai8xtools.training.loop.observers import Context, Observer
from ai8xtools.training.loop.trainer import Trainer
from ai8xtools.training.network.building import build_model, teach
from ai8xtools.training.network.distillation import Distillation, NoLoss, output_length
from ai8xtools.training.network.exits import refused
from ai8xtools.training.network.fitting import expected, refuse, refuse_fractions
from ai8xtools.training.network.scaling import scaled
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.policies import qat
from ai8xtools.training.policies.cosine import schedule_of_run
from ai8xtools.training.policies.schedule import ScheduleFile
from ai8xtools.training.saving import checkpoints
from ai8xtools.training.saving.logs import Log, copy_folder
from ai8xtools.training.saving.progress import Progress, progress_of, settings_of
from ai8xtools.training.search.choice import Deployment, Search
from ai8xtools.training.search.preparing import prepared_search
from ai8xtools.training.search.trainer import SearchTrainer
from ai8xtools.training.tasks.choice import check_fit, check_teacher, task_of
from ai8xtools.training.tasks.classification import Classification
from ai8xtools.training.tasks.embedding import Embedding
from ai8xtools.training.tasks.relations import Relations
from ai8xtools.training.tasks.task import Task
from ai8xtools.values.accuracy import capitalized

OBSERVERS: tuple[Callable[[Context], Observer | None], ...] = display.MAKERS
"""Functions that make an observer if the options ask for it."""


_FEW = 50
"""Fewer validation samples hardly tell epochs apart: one is two percent."""
Around = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes what is evaluated of what runs the model."""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """The state before any data is read: network, policies, and the content of a checkpoint.

    `loaded` is the checkpoint of --resume-from or --exp-load-weights-from, `surplus` are its names
    that the network has no place for. `progress` is that of the run that is resumed. `unscaled`:
    the weights are those of an ordinary network, whose data may exceed the range of the chip.
    """

    models: Mapping[str, ModelEntry]
    dataset: DatasetEntry
    model: nn.Module
    policy: dict[str, Any] | None
    rates: ScheduleFile | None
    loaded: checkpoints.Loaded | None
    surplus: list[str]
    progress: Progress
    search: Search | None = None
    unscaled: bool = False


def run(
    options: TrainingOptions,
    around: Around | None = None,
    deployment: Callable[[], Deployment] | None = None,
    complete: Callable[..., Any] | None = None,
    integers: Integers | None = None,
) -> Mapping[str, Any]:
    """Train or evaluate as the options say.

    With `around`, what it makes of the model is evaluated in its place. `deployment` knows the
    chip, for an architecture search; `complete` chooses the places of --yaml-template. With
    `integers` a run on the user's own data ends with the accuracy of what the chip computes.

    Returns what the log folder has as metrics.json; nothing of exports, and of processes that do
    not lead. Raises InputError (and what data sets raise) for unusable files and options.
    """
    share = share_of_process()
    if export.is_requested(options) or options.evaluate:
        if not share.leads:
            return {}  # nothing to distribute
        share = UNDIVIDED
    device = compute_device(options, share)
    with connected(share, device):
        prepared = prepare(options, share)
        if options.nas:
            assert deployment is not None
            search = prepared_search(
                prepared.model, prepared.dataset.input, options, deployment(), share
            )
            prepared = replace(prepared, search=search)
        if export.is_requested(options):
            entry = prepared.models[options.arch]
            arguments = prepared.model, entry, prepared.dataset, prepared.policy, options
            for notice in filter(None, (entry.notice, prepared.dataset.notice)):
                print(f"NOTICE: {notice}")
            print(export.export(*arguments, complete))
            return {}
        return _compute(prepared, device, share, options, around, integers)


def _compute(
    prepared: PreparedRun,
    device: torch.device,
    share: Share,
    options: TrainingOptions,
    around: Around | None,
    integers: Integers | None,
) -> Mapping[str, Any]:
    """Train or measure."""
    if options.exit is not None and share.divided:
        raise refused("the margin is chosen in one process", "Train without torchrun.")
    data = load_data(prepared.dataset, options, prepared.progress.seed, share)
    check_input(data.item[0], prepared.dataset, options)
    task = _task(prepared, data, device, options)
    data = replace(data, record=task.noted(data.record, data.item[0]))
    distillation = _distillation(prepared, task, data, options)
    networks = [prepared.model] if distillation is None else [prepared.model, distillation.teacher]

    log = Log(options.out_dir, options.name, options.tensorboard, silent=not share.leads)
    watching: list[Observer] = []
    try:
        _introduce(log, options, data, prepared)
        log.detail(f"Computing on the device {device}")
        _warn(log, prepared, options, replaced=around is not None)
        if prepared.unscaled:
            log.say(scaled(prepared.model, data))
        if share.divided:
            log.detail(f"Each batch is divided among {share.processes} processes")
            normalize_together(prepared.model)
        layout = layout_of((network.to(device) for network in networks), data.item[0])
        for network in networks:
            network.to(memory_format=layout)
        forward = forward_of(prepared.model, device, options, share)
        if options.compiler_mode != "none" and not compiles(options, device):
            log.warn("--compiler-mode has no effect without a CUDA device")
        if around is not None:
            forward = around(forward)
        if share.leads:
            context = Context(options, prepared.dataset, task, log)
            watching += (one for make in OBSERVERS if (one := make(context)) is not None)
            watching += display.reporters(context)
        passes = Pass(
            prepared.model, forward, task, device, options, log, distillation, tuple(watching),
            share, options.mixed_precision and not qat.begun(prepared.model),
            average=None if options.evaluate or options.ema is None
            else Average(prepared.model, options.ema),
            layout=layout,
        )  # fmt: skip
        if options.evaluate:
            _evaluate_only(passes, data, options)
        else:
            resumed = prepared.loaded if options.resume_from else None
            parts = passes, data, prepared.policy, prepared.rates, prepared.progress
            search = prepared.search
            trainer = Trainer(*parts) if search is None else SearchTrainer(search, *parts)
            trainer.run(resumed)
            best = trainer.best() if integers is not None and task.is_judged else {}
            if integers is not None and best and not (share.divided or search):
                judge(passes, data, best, partial(_fresh, prepared, options), integers)
            if options.exit is not None and integers is not None and not share.divided:
                path = max(trainer.best().items())[1]
                exits.settle(passes, data, path, partial(_fresh, prepared, options), integers)
        for observer in watching:
            observer.ended(log.metrics)
        measured = log.metrics.get("test_best") or log.metrics.get("test") or {}
        measures = {
            name: value
            for name, value in measured.items()
            if isinstance(value, float) and "loss" not in name
        }
        if measures:
            note(accuracy={"measures": measures, "samples": data.test.samples})
        note(subject=options.arch)
        if not (options.nas or share.divided):
            saved = {} if options.evaluate else trainer.best()
            _suggest(options, saved.get(True) or saved.get(False))
    except RuntimeError as exc:
        raise explained(exc, options) from exc
    finally:
        for observer in watching:
            observer.close()
        log.close()
    if not share.leads:
        return {}
    copy_folder(log.folder, options.copy_output_folder)
    return log.metrics


def _suggest(options: TrainingOptions, trained: Path | None) -> None:
    """Keep the command that usually follows: quantize what was trained, deploy integers."""
    chip, name = ai8x.dev, options.name or plain_name(options.arch)
    source = trained or options.resume_from or options.exp_load_weights_from
    if chip is None or source is None:
        return
    device = ("--device", chip.name)
    if options.act_mode_8bit:
        data = () if ":" in options.dataset else ("--dataset", options.dataset)
        network = ("--model", options.arch, *data, "--checkpoint-file", source)
        suggest("ai8xize.py", *network, *device, "--prefix", name, "--test-dir", "projects")
    else:
        suggest("quantize.py", source, f"{name}-q.pth.tar", *device)


def prepare(options: TrainingOptions, share: Share) -> PreparedRun:
    """Find, build and load the network, and read the policies."""
    models: Mapping[str, ModelEntry] = find_models()
    by_name = models
    if is_file_and_class(options.arch):
        dataset = dataset_of(options)
        entry = named_model(options.arch, lambda: by_name, dataset.input)
    else:
        entry = choose(models, options.arch, "--model")
        dataset = dataset_of(options)
    source = options.resume_from or options.exp_load_weights_from
    plain = None
    if options.import_model:
        plain = plain_state(source) if source is not None else None
        entry = imported(entry, options.arch, plain, source, prove=options.prove_import)
        source = None if plain is not None else source
    elif options.act_mode_8bit:
        entry = completed(entry, options.arch, prove=options.prove_import)
    models = {**models, options.arch: entry}
    set_deterministic(options)
    repeatable = options.deterministic or options.evaluate
    seed = options.seed if repeatable else share.agree(new_seed())
    progress = Progress(seed, settings_of(options))
    seed_everything(progress.seed)
    ai8x.set_device(options.device, options.act_mode_8bit, options.avg_pool_rounding, verbose=False)
    model = build_model(entry, dataset, options)
    policy = None
    if options.qat_policy is not None and not (options.evaluate or options.nas):
        policy = qat.read_policy(options.qat_policy)
        refuse_foreign(model, "be quantized in training", "--model")
        qat.check_layers(policy, model, options.qat_policy)
    if options.act_mode_8bit:
        refuse_foreign(model, "compute with integers", "-8")
        if plain is not None:
            refuse_fractions(model, str(options.resume_from or options.exp_load_weights_from))
    rates = schedule_of_run(options)
    loaded = surplus = None
    if source is not None:
        loaded = checkpoints.read(source)
        refuse(
            expected(model, loaded.state), loaded.state, loaded.arch, source,
            options, models, dataset,
        )  # fmt: skip
        surplus = checkpoints.load_into(model, loaded)
        if options.act_mode_8bit:
            refuse_fractions(model, source)
        if options.resume_from is not None and not options.reset_optimizer:
            progress = progress_of(loaded.extras, (loaded.epoch or 0) + 1, progress)
    elif not options.evaluate and requested_version(options, policy) == 2:
        ai8x.use_thresholds(model)
    if source is not None and not options.evaluate:
        _check_version(model, options, policy, source)
    return PreparedRun(
        models, dataset, model, policy, rates, loaded, surplus or [], progress,
        unscaled=plain is not None and not options.act_mode_8bit,
    )  # fmt: skip


def requested_version(options: TrainingOptions, policy: dict[str, Any] | None) -> int:
    """Return the generation of quantization-aware training that a run is asked for."""
    return options.qat_version or qat.version_of(policy)


def _check_version(
    model: nn.Module, options: TrainingOptions, policy: dict[str, Any] | None, path: str
) -> None:
    """Raise InputError if a checkpoint is of another generation of QAT than the run is to be."""
    version = 2 if ai8x.has_thresholds(model) else 1
    asked = options.qat_version is not None or qat.version_of(policy) == 2
    if asked and requested_version(options, policy) != version:
        raise InputError(
            "E609",
            f"the checkpoint is of generation {version} of quantization-aware training, the run "
            f"asks for generation {requested_version(options, policy)}",
            path,
            f"Continue with --qat-version {version} and a policy of that generation, or start "
            "anew.",
        )


def _task(
    prepared: PreparedRun, data: Data, device: torch.device, options: TrainingOptions
) -> Task:
    """Return the task, after a trial of the network on one sample."""
    task = task_of(prepared.dataset, options, data.item)(prepared.dataset, prepared.model, options)
    if options.kd_teacher is not None:
        if options.kd_relationbased and options.dr is not None:
            raise InputError(
                "E638", "relations are learned without labels, embeddings with them",
                "--kd-relationbased", "Leave out one of --dr and --kd-relationbased.",
            )  # fmt: skip
        if options.kd_relationbased:
            task = Relations(task, prepared.dataset, prepared.model, options)
        elif options.kd_student_wt == 0:
            task.criterion = NoLoss()
    if options.confusion and not isinstance(task, Classification):
        raise InputError(
            "E638", f"{options.dataset} has no classes to confuse", "--confusion",
            "Leave out the option.",
        )  # fmt: skip
    if not isinstance(task, Classification) or isinstance(task, Embedding):
        for option, value in (("--label-smoothing", options.label_smoothing),
                              ("--mixup", options.mixup)):  # fmt: skip
            if value and not options.evaluate:
                raise InputError(
                    "E638", f"{options.dataset} is not trained by cross entropy of classes",
                    option, "Leave out the option.",
                )  # fmt: skip
    display.check(task, options)
    try:
        check_fit(task, prepared.model, data.item, options)
    except InputError:
        check_shape(data.item[0], prepared.dataset)
        raise
    task.criterion.to(device)
    source = options.resume_from or (options.exp_load_weights_from if options.evaluate else None)
    if (
        source is not None
        and prepared.loaded is not None
        and not task.restore(prepared.loaded.extras, source)
    ):
        raise InputError(
            "E609",
            "the checkpoint holds no class centres, which --dr needs to continue",
            source,
            "Take only its weights with --exp-load-weights-from, and train.",
        )
    return task


def _distillation(
    prepared: PreparedRun, task: Task, data: Data, options: TrainingOptions
) -> Distillation | None:
    """Return the teacher with its weights if one is asked for; it always computes in floating
    point. One that lets the length of its output be chosen gives as many numbers as the network
    that learns its outputs."""
    if options.kd_teacher is None or (options.evaluate and not options.kd_relationbased):
        return None
    entry = choose(prepared.models, options.kd_teacher, "--kd-teacher")
    chosen = entry.dr and options.kd_relationbased
    length = output_length(prepared.model, data.item[0]) if chosen else None
    own = replace(
        options, arch=entry.name, act_mode_8bit=False, dr=length, backbone_checkpoint=None
    )
    ai8x.set_device(options.device, False, options.avg_pool_rounding, verbose=False)
    teacher = build_model(entry, prepared.dataset, own)
    if options.kd_resume is not None:
        loaded = checkpoints.read(options.kd_resume)
        refuse(
            expected(teacher, loaded.state), loaded.state, loaded.arch, options.kd_resume,
            own, prepared.models, prepared.dataset, "--kd-teacher",
        )  # fmt: skip
        checkpoints.load_into(teacher, loaded)
    ai8x.set_device(options.device, options.act_mode_8bit, options.avg_pool_rounding, verbose=False)
    distillation = teach(teacher, options)
    check_teacher(distillation, task, prepared.model, data.item, options)
    return distillation


def _introduce(log: Log, options: TrainingOptions, data: Data, prepared: PreparedRun) -> None:
    """Log what the run is about, and warn of its data."""
    chip = ai8x.dev
    assert chip is not None
    log.detail(f"Command line: {options.command_line}")
    log.say(f"Configuring device: {chip.name}, simulate={chip.simulate}.")
    sizes = {"training": data.train, "validation": data.validation, "test": data.test}
    listed = ", ".join(f"{name}={part.samples}" for name, part in sizes.items() if part)
    for line in prepared.dataset.own.notes if prepared.dataset.own is not None else ():
        log.say(line)
    log.say(f"Dataset sizes: {listed}")
    chosen_on = 0 if data.validation is None or options.no_validation else data.validation.samples
    if prepared.dataset.own is not None and 0 < chosen_on < _FEW and not options.evaluate:
        log.say(
            f"The best epoch is chosen on {chosen_on} samples, which hardly tell epochs apart: "
            "--no-validation trains on all samples and takes the last epoch"
        )
    log.text("Command line", options.command_line)
    network = prepared.models[options.arch]
    for warning in filter(None, (network.notice, prepared.dataset.notice, data.doubt)):
        log.warn(warning)
    for line in notes_of(prepared.model):
        log.say(line)
    if prepared.surplus:
        source = options.resume_from or options.exp_load_weights_from
        log.warn(f"{source}: no place in the model for {', '.join(prepared.surplus)}")
    if options.compress and not options.evaluate:
        log.keep(options.compress)
    for line in prepared.progress.changes(options):
        log.warn(line)
    log.metrics |= {"model": options.arch, "dataset": options.dataset, "sizes": {
        name: part.samples for name, part in sizes.items() if part
    }}  # fmt: skip


def _warn(log: Log, prepared: PreparedRun, options: TrainingOptions, *, replaced: bool) -> None:
    """Warn of random weights, if they are not `replaced`, and of options that have no effect."""
    policy, rates = prepared.policy, prepared.rates
    idle = rates.idle(options.epochs) if rates is not None else []
    if idle:
        log.warn(
            f"{options.compress}: {', '.join(idle)} never changes the learning rate in the "
            f"{options.epochs} epochs of the run. Compare starting_epoch and ending_epoch of its "
            "policy."
        )
    for line in options.idle:
        log.warn(line)
    if options.mixed_precision and qat.begun(prepared.model):
        log.warn("--mixed-precision has no effect: the weights of the checkpoint are quantized")
    if prepared.loaded is None and options.evaluate and not (options.import_model or replaced):
        log.warn("the weights are random: --exp-load-weights-from names a checkpoint to evaluate")
    if options.kd_teacher is not None and options.kd_resume is None:
        log.warn(f"the weights of the teacher {options.kd_teacher} are random; see --kd-resume")
    if policy is not None and policy["start_epoch"] >= options.epochs:
        log.warn(
            f"{options.qat_policy}: start_epoch is {policy['start_epoch']}, but the run ends after "
            f"{options.epochs} epochs, without quantization-aware training. Raise --epochs, lower "
            "start_epoch, or choose --qat-policy None."
        )


def _evaluate_only(passes: Pass, data: Data, options: TrainingOptions) -> None:
    """Measure on the test set; write the sample if requested."""
    log = passes.log
    if options.save_sample is not None:
        path = save_sample(data.test, options.save_sample, options)
        log.say(f"Saved test image {options.save_sample} to {path}")
    scores = measure(passes, data.test)
    log.metrics["test"] = scores.as_dict()
    log.save_metrics()
    if passes.task.is_judged:
        measured = passes.task.quality(scores, data.test.samples)
        doubt = f"\n{measured.doubt}" if measured.doubt else ""
        log.say(f"{capitalized(measured.title)}: {measured}{doubt}")


def _fresh(prepared: PreparedRun, options: TrainingOptions, whole: bool) -> nn.Module:
    """Return the network of a run without weights, that computes with whole numbers or not."""
    ai8x.set_device(options.device, whole, options.avg_pool_rounding, verbose=False)
    own = replace(options, act_mode_8bit=whole)
    return build_model(prepared.models[options.arch], prepared.dataset, own)
