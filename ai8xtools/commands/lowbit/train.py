"""train.py --model ai85fcbit, ai85cnnbit or ai85winbit: training of low-bit networks.

A program of its own: these networks have another arithmetic than those of the accelerator.
Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ai8xtools.commands.lowbit.arguments.trainer import TrainOptions
from ai8xtools.commands.lowbit.data import pictures_of

if TYPE_CHECKING:
    from ai8xtools.commands.lowbit.files import Trained
    from ai8xtools.training.lowbit.epochs import Pictures
    from ai8xtools.training.lowbit.recipe import Recipe
    from ai8xtools.training.saving.logs import Log


def train_lowbit(options: TrainOptions) -> int:
    """Train or evaluate; return the exit status. Raises InputError, OSError."""
    from ai8xtools.commands.lowbit.files import read

    recipe = _recipe(options)
    state = None if options.weights is None else read(options.weights)
    training, test, classes = pictures_of(
        options.dataset, options.data, training=not options.evaluate
    )
    if options.evaluate and state is not None:
        return _evaluate(state, test, len(classes))
    from ai8xtools.training.saving.logs import Log

    log = Log(options.out_dir, options.name)
    log.say(f"{recipe}")
    unused = () if options.policy is None else _unused(options.policy)
    if unused:
        log.warn(f"Keys that change nothing here: {', '.join(unused)} (docs/low-bit.md)")
    _train(options, recipe, state, (training, test), classes, log)
    log.close()
    return 0


def _unused(policy: str) -> tuple[str, ...]:
    from ai8xtools.training.lowbit.recipe import passed_over

    return passed_over(policy)


def _evaluate(state: Trained, test: Pictures, classes: int) -> int:
    from ai8xtools.commands.lowbit.files import network_of
    from ai8xtools.training.lowbit.loop import evaluate
    from ai8xtools.training.lowbit.pictures import codes, reduced

    correct = evaluate(network_of(state, classes), codes(reduced(test.images)), test.labels)
    print(f"Top1: {100 * correct / len(test.labels):.3f}   ({correct} of {len(test.labels)})")
    return 0


def _train(
    options: TrainOptions,
    recipe: Recipe,
    state: Trained | None,
    pictures: tuple[Pictures, Pictures],
    classes: tuple[str, ...],
    log: Log,
) -> None:
    """Train the teacher if the recipe has one, then the network, and save both."""
    import torch

    from ai8xtools.commands.lowbit.files import load, read_teacher, save, save_teacher
    from ai8xtools.training.lowbit.loop import EpochResult, teach, train
    from ai8xtools.training.lowbit.network import LowBitNetwork
    from ai8xtools.training.lowbit.teacher import Mixture

    def tell(result: EpochResult) -> None:
        log.say(
            f"Epoch [{result.epoch}] loss {result.loss:.4f}  Top1: "
            f"{100 * result.correct / result.total:.3f}   ({result.seconds:.1f} s)"
        )

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    training, test = (part.to(device) for part in pictures)
    stem = f"{log.folder}/" + (f"{options.name}_" if options.name else "")
    torch.manual_seed(options.seed)
    teacher: torch.nn.Module | None = None
    if options.teachers:
        teachers = [read_teacher(path, classes) for path in options.teachers]
        teacher = Mixture(teachers, recipe.temperature).to(device)
    elif recipe.teacher_epochs:
        log.say("Training the teacher")
        teacher = trained = teach(recipe, training, test, len(classes), options.seed, tell)
        save_teacher(Path(f"{stem}teacher.pth.tar"), trained, classes)
        log.say(f"==> Saved {stem}teacher.pth.tar")
    torch.manual_seed(options.seed)
    network = LowBitNetwork(recipe.architecture(len(classes)))
    if state is not None:
        load(network, state.state, options.weights, "the policy")
    train(network.to(device), recipe, training, test, options.seed, tell, teacher)
    save(Path(f"{stem}lowbit.pth.tar"), network, recipe, classes)
    log.say(f"==> Saved {stem}lowbit.pth.tar")


def _recipe(options: TrainOptions) -> Recipe:
    from ai8xtools.training.lowbit.recipe import Recipe, checked, read_recipe

    recipe = Recipe(model=options.model)
    if options.policy is not None:
        recipe = read_recipe(options.policy, options.model)
    changed = replace(
        recipe,
        epochs=recipe.epochs if options.epochs is None else options.epochs,
        batch_size=recipe.batch_size if options.batch_size is None else options.batch_size,
        lr=recipe.lr if options.lr is None else options.lr,
        optimizer=options.optimizer or recipe.optimizer,
    )
    return checked(changed, "the command line")
