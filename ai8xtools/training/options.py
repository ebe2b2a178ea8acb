"""The options of a run, as train.py hands them over.

Source: docs/options.md, "train.py".
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from ai8xtools.training.catalog.discovery import SOURCES
from datasets.own.settings import OPEN, DataSettings
from device import MAX78000

Summary = Literal[
    "sparsity", "compute", "model", "modules", "png", "png_simplified", "png_w_params", "onnx",
    "onnx_simplified",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What the user decides; the defaults are those of the command line.

    `device` is the number of a chip: 85 is MAX78000, 87 MAX78002, 84 AI84. `act_mode_8bit`
    computes with integers and belongs to `evaluate`; `save_sample` belongs to both. `qat_policy`
    None trains without quantization. `optimizer` and `lr` None mean SGD and 0.1, with a warning.
    `gpus` None means the first CUDA device if there is one. `idle` are options on the command line
    that change nothing, with the reason; `unset` those that it leaves to a recipe. Loaders of data
    sets receive the whole object and look at `act_mode_8bit` and `truncate_testset`.
    `weight_decay_of` are patterns of names of parameters with their weight decay; `ema` is the
    share of the average a step keeps.
    """

    arch: str
    dataset: str
    own: DataSettings = OPEN
    import_model: bool = False
    prove_import: bool = True
    fits: Literal["table", "json"] | None = None
    strict: bool = False
    out_fold_ratio: int = 1
    device: int = MAX78000.die
    act_mode_8bit: bool = False
    truncate_testset: bool = False
    data: str = "data"
    workers: int = min(4, os.cpu_count() or 1)
    validation_split: float = 0.1
    no_validation: bool = False
    use_bias: bool = False
    avg_pool_rounding: bool = False

    epochs: int = 90
    epoch_samples: int | None = None
    batch_size: int = 256
    optimizer: Literal["sgd", "adam", "adamw"] | None = None
    lr: float | None = None
    momentum: float = 0.9
    weight_decay: float = 1e-4
    compress: str | None = None
    qat_version: int | None = None
    qat_range: Literal["fit", "vendor"] | None = None
    qat_policy: str | None = str(SOURCES / "policies" / "qat_policy.yaml")
    deterministic: bool = False
    seed: int = 0
    show_train_accuracy: Literal["none", "last_batch", "full"] = "last_batch"
    num_best_scores: int = 1
    regression: bool = False
    compiler_mode: Literal["none", "default", "reduce-overhead", "max-autotune"] = "none"
    compiler_backend: str = "inductor"
    gpus: tuple[int, ...] | Literal["all"] | None = None
    cpu: bool = False
    print_freq: int = 10
    mixed_precision: bool = False

    lr_schedule: Literal["cosine"] | None = None
    warm_up: int = 0
    lr_min: float = 0.0
    weight_decay_of: tuple[tuple[str, float], ...] = ()
    clip_gradient: float | None = None
    label_smoothing: float = 0.0
    mixup: float = 0.0
    ema: float | None = None
    early_stop: int | None = None
    exit: int | None = None
    exit_loss: float = 0.05

    resume_from: str | None = None
    exp_load_weights_from: str | None = None
    reset_optimizer: bool = False
    safetensors: bool = False
    evaluate: bool = False
    confusion: bool = False
    save_sample: int | None = None
    slice_sample: bool = False
    name: str | None = None
    out_dir: str = "logs"
    copy_output_folder: str | None = None
    tensorboard: bool = False
    qat_diagnostics: bool = False
    track: tuple[str, ...] = ()

    param_hist: bool = False
    pr_curves: bool = False
    embedding: bool = False
    save_csv: str | None = None
    shap: int | None = None
    summary: Summary | None = None
    summary_filename: str = "model"
    yaml_template: str | None = None
    report: str | None = None

    obj_detection: bool = False
    obj_detection_params: str | None = None

    kd_teacher: str | None = None
    kd_resume: str | None = None
    kd_temperature: float = 1.0
    kd_distill_wt: float = 0.5
    kd_student_wt: float = 0.5
    kd_start_epoch: int = 0
    kd_relationbased: bool = False

    nas: bool = False
    nas_policy: str = str(SOURCES / "policies" / "nas_policy.yaml")
    nas_kd_resume_from: str | None = None
    nas_stage_transition_list: str | None = None

    dr: int | None = None
    scaf_lr: float = 1e-4
    scaf_scale: float = 64.0
    scaf_margin: float = 28.6
    backbone_checkpoint: str | None = None

    idle: tuple[str, ...] = ()
    unset: frozenset[str] = frozenset()
    command_line: str = ""
