"""Where and how the network is computed: processor, CUDA devices, compiled or not."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import distributed, nn

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.compute.distributed import Share, together
from ai8xtools.training.options import TrainingOptions


def set_deterministic(options: TrainingOptions) -> None:
    """Make every operation deterministic if asked for, and in evaluation.

    PyTorch warns of operations that cannot be on a CUDA device.
    """
    if options.deterministic or options.evaluate:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.utils.deterministic.fill_uninitialized_memory = False
        if options.compiler_mode == "none":  # the other way loads torch's compiler: seconds
            torch.set_deterministic_debug_mode("warn")
        else:
            torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.benchmark = False


def compute_device(options: TrainingOptions, share: Share) -> torch.device:
    """Return the device to compute on: the first requested CUDA device, or else the CPU.

    In distributed training each process uses the device of its rank. Raises InputError for the
    number of a CUDA device that is not present.
    """
    present = torch.cuda.device_count()
    if share.divided and options.gpus is not None:
        raise InputError(
            "E659", "torchrun gives each process one device", "--gpus",
            "Leave the option out; CUDA_VISIBLE_DEVICES chooses devices.",
        )  # fmt: skip
    numbers = (share.device,) if share.divided else _chosen(options) or (0,)
    if options.cpu or (present == 0 and options.gpus in (None, (0,), "all")):
        return torch.device("cpu")
    for number in numbers:
        if number >= present:
            raise InputError(
                "E611",
                f"there is no CUDA device {number}; {present} are present, counted from 0",
                "torchrun" if share.divided else "--gpus",
                "Choose another one, or use --cpu.",
            )
    return torch.device(f"cuda:{numbers[0]}")


def _chosen(options: TrainingOptions) -> tuple[int, ...]:
    """Return the numbers of the CUDA devices that --gpus asks for."""
    if options.gpus == "all":
        return tuple(range(torch.cuda.device_count()))
    return options.gpus or ()


def compiles(options: TrainingOptions, device: torch.device) -> bool:
    """Return whether the network is compiled; torch's own compiler serves CUDA devices only."""
    useful = device.type == "cuda" or options.compiler_backend != "inductor"
    return options.compiler_mode != "none" and useful


def explained(exc: RuntimeError, options: TrainingOptions) -> Exception:
    """Return the error for a failure of PyTorch, or the failure itself."""
    text = (str(exc).splitlines() or [""])[0]
    if isinstance(exc, torch.OutOfMemoryError) or "not enough memory" in text:
        return InputError(
            "E656",
            f"there is too little memory for batches of {options.batch_size}: {text}",
            "--batch-size",
            "Choose a smaller number.",
        )
    if distributed.is_initialized() and (isinstance(exc, distributed.DistError) or "gloo" in text):
        return InputError(
            "E660",
            f"another process of the training has ended: {text}",
            "torchrun",
            "See its own message; if there is none, it was killed.",
        )
    if text.startswith("DataLoader worker"):
        return InputError(
            "E657",
            f"a process that loads samples has ended: {text}",
            "--workers",
            "Often memory is short: choose a smaller number, or 0 to load in this process.",
        )
    if type(exc).__module__.startswith(("torch._dynamo", "torch._inductor")):
        return InputError(
            "E634",
            f"{options.compiler_backend} cannot compile the network: {text}",
            "--compiler-mode",
            "Leave out the option.",
        )
    return exc


def forward_of(
    model: nn.Module, device: torch.device, options: TrainingOptions, share: Share
) -> Callable[..., Any]:
    """Return the callable for the model: itself, compiled, or copies of it on several devices.

    Raises InputError for a compiler that does not exist.
    """
    if share.divided:
        model = together(model, device)
    if device.type == "cuda" and len(_chosen(options)) > 1:
        return nn.DataParallel(model, list(_chosen(options)))
    if not compiles(options, device):
        return model
    mode = None if options.compiler_mode == "default" else options.compiler_mode
    backend = options.compiler_backend
    if backend not in torch.compiler.list_backends(exclude_tags=()):
        usual = torch.compiler.list_backends()
        raise InputError(
            "E634",
            f"there is no compiler {backend!r}",
            "--compiler-backend",
            f"There are {', '.join(usual)}.",
        )
    compiled: Callable[..., Any] = torch.compile(
        model, mode=mode if backend == "inductor" else None, backend=backend
    )
    return compiled
