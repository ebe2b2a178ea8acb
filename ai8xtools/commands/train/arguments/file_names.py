"""The files that a run of train.py reads, and those it writes under names that the user chose."""

from __future__ import annotations

from ai8xtools.training.options import TrainingOptions

Outputs = list[tuple[str, str | None]]


def files(options: TrainingOptions) -> tuple[Outputs, list[str | None]]:
    """Return outputs, by the option that names them, and inputs, for `refuse_overwriting`.

    Checkpoints and logs have folders of their own, which are always new.
    """
    network = options.arch.rpartition(":")[0] if ".py:" in options.arch else None
    inputs = [
        network, options.compress, options.qat_policy, options.resume_from,
        options.exp_load_weights_from, options.kd_resume, options.obj_detection_params,
        options.backbone_checkpoint, options.nas_policy if options.nas else None,
        options.nas_kd_resume_from,
    ]  # fmt: skip
    outputs: Outputs = [("--yaml-template", options.yaml_template), ("--report", options.report)]
    kind = options.summary or ""
    for suffix in ("onnx", "png"):
        if kind.startswith(suffix):
            outputs.append(("--summary-filename", f"{options.summary_filename}.{suffix}"))
    return outputs, inputs
