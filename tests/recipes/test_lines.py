"""Command lines of users of the vendor's tools are understood; WHAT=recipes runs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.commands.quantize.arguments import parse as parse_quantize
from ai8xtools.commands.train.arguments import parse as parse_train
from tests.conftest import ROOT
from tests.recipes.running import lines, missing_names, run

LINES = lines()
TRAINING = {name: words for name, words in LINES.items() if words[0] == "train.py"}


@pytest.mark.parametrize("name", TRAINING)
def test_networks_data_sets_and_policies_exist(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where no policies are
    options, _ = parse_train(TRAINING[name][1:])
    assert list(missing_names(TRAINING[name][1:])) == []
    for file in (options.compress, options.qat_policy, options.obj_detection_params):
        assert file is None or Path(file).is_file()


def test_every_policy_is_used() -> None:
    words = {Path(word).name for line in LINES.values() for word in line}
    defaults = {"qat_policy.yaml", "obj_detection_params.yaml"}
    defaults |= {"nas_policy_mnist.yaml", "schedule_nas_mnist.yaml"}
    ours = {"digits", "short", "mixed", "lowbit"}
    files = {p.name for p in (ROOT / "policies").iterdir() if not ours & set(_parts(p.stem))}
    assert files - words - defaults == set()


def _parts(stem: str) -> list[str]:
    return stem.replace("-", "_").split("_")


def test_quantization_is_understood() -> None:
    for words in LINES.values():
        if words[0] == "quantize.py":
            parse_quantize(words[1:])


@pytest.mark.parametrize(
    "name",
    ["mnist_qat", "afsk", "camvid_unet_small", "qrcode_tinierssd", "autoencoder",
     "evaluate_mnist_extrasmall", "quantize_post_training"],
)  # fmt: skip
def test_line_gets_as_far_as_the_data(name: str, tmp_path: Path) -> None:
    assert run(LINES[name], tmp_path) is None


def test_what_does_not_work_is_told(tmp_path: Path) -> None:
    words = [*LINES["mnist"], "--qat-policy", "policies/qat_policy_cifar100.yaml"]
    assert "conv11" in str(run(words, tmp_path))
    assert "not known" in str(run([*LINES["mnist"], "--dataset", "absent"], tmp_path))
