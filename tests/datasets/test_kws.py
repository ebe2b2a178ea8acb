"""Keyword spotting: from WAV and FLAC files to batches, with a tiny Speech Commands."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tarfile
import wave
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datasets import audio, kws, kws_cache, kws_noise, speech_files
from datasets.downloads import Download
from datasets.errors import DatasetError

BACKGROUND_CUTS = 5


def _tone(seconds: float, seed: int = 0) -> audio.Samples:
    """Return a loud recording that differs from one seed to the next."""
    count = int(seconds * audio.RATE)
    pitch = 0.02 + 0.01 * (seed % 7)
    return (0.4 * np.sin(pitch * np.arange(count))).astype(np.float32)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder: four recordings of each word (2 train, 1 test, 1 validates), 2 noises."""
    folder = tmp_path_factory.mktemp("data")
    _store(folder / "KWS")
    return folder


def _store(folder: Path) -> None:
    raw, words = folder / "raw", [w for w in speech_files.CLASSES if w not in kws._TEN[-1:]]
    words.remove("librispeech")
    for number, word in enumerate(words):
        (raw / word).mkdir(parents=True)
        for part in range(4):
            audio.write_wav(raw / word / f"{part}.wav", _tone(1 - part * 0.1, number))
    (raw / "testing_list.txt").write_text("".join(f"{word}/2.wav\n" for word in words))
    (raw / "validation_list.txt").write_text("".join(f"{word}/3.wav\n" for word in words))
    (raw / "_background_noise_").mkdir()
    for number in range(2):
        audio.write_wav(raw / "_background_noise_" / f"{number}.wav", _tone(1.2, number))
    for label in ("_silence_", "_unknown_", "yes"):
        (folder / "raw_test" / label).mkdir(parents=True)
        audio.write_wav(folder / "raw_test" / label / "a.wav", _tone(1))
    soundfile = pytest.importorskip("soundfile")
    chapter = folder / "librispeech" / "dev-clean" / "1" / "2"
    chapter.mkdir(parents=True)
    soundfile.write(chapter / "a.flac", _tone(4), audio.RATE, subtype="PCM_16")


@pytest.fixture(autouse=True)
def few_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_files, "CUTS_PER_BACKGROUND", BACKGROUND_CUTS)


def _record(name: str) -> dict[str, Any]:
    return next(r for r in [*kws.datasets, *kws_noise.datasets] if r["name"] == name)


def _loaded(name: str, data: Path, args: Namespace) -> tuple[Any, Any]:
    loader: Callable[..., Any] = _record(name)["loader"]
    return loader((str(data), args))


def _store_noises(data: Path) -> None:
    """Write a long and a short noise for training and for tests."""
    for part in ("noise_train", "noise_test"):
        folder = data / "MSnoise" / "raw" / part
        folder.mkdir(parents=True, exist_ok=True)
        audio.write_wav(folder / "long.wav", _tone(3, 1))
        audio.write_wav(folder / "short.wav", _tone(0.3, 2))


def test_sets_hold_the_right_parts(data: Path, args: Namespace) -> None:
    words, cuts = 35, 2 * BACKGROUND_CUTS
    train, test = _loaded("KWS_20", data, args)
    cut_speech = len(list((data / "KWS" / "raw" / "librispeech").iterdir()))
    assert cut_speech == 3
    assert len(train) == 3 * (3 * words + cuts + cut_speech)
    assert len(test) == words
    assert len(train.valid_indices) >= 3 * words
    validates = train.source.parts[train.rows[train.valid_indices], 0]
    assert set(validates.tolist()) == {speech_files.VALIDATION}
    train, test = _loaded("KWS_12_benchmark", data, args)
    assert len(train) == 3 * (3 * words + cuts)  # without LibriSpeech
    assert test.targets.tolist() == [10, 11, 9]


@pytest.mark.parametrize(
    ("name", "classes", "weight"),
    [
        ("KWS", 7, 0.06),
        ("KWS_12_benchmark", 12, 0.056),
        ("KWS_20", 21, 0.07),
        ("KWS_35", 36, 0.07),
        ("KWS_20_msnoise_mixed", 21, 0.07),
        ("MixedKWS20_10dB", 21, 0.07),
    ],
)
def test_records(name: str, classes: int, weight: float, data: Path, args: Namespace) -> None:
    _store_noises(data)
    record = _record(name)
    assert record["input"] == (128, 128)
    assert record["weight"] == (1,) * (classes - 1) + (weight,)
    labels = record["output"]
    assert isinstance(labels, tuple)
    assert len(labels) == classes
    assert labels[-1] == "_unknown_"
    train, test = _loaded(name, data, args)
    assert set(train.targets.tolist()) == set(range(classes))
    x, targets = train.batch(torch.arange(5))
    assert (x.shape, x.dtype, targets.dtype) == ((5, 128, 128), torch.float32, torch.int64)
    item, target = test[0]
    assert (item.shape, target.shape) == ((128, 128), ())
    assert float(x.abs().max()) <= 1
    assert torch.equal(x * 128, (x * 128).round())


def test_an_item_is_the_recording_in_frames(data: Path, integers: Namespace) -> None:
    _, test = _loaded("KWS_20", data, integers)
    assert len(test) == 1  # truncated
    samples = audio.fit(audio.read_recording(data / "KWS" / "raw" / "backward" / "2.wav"))
    expected = np.clip(np.round((samples + 1) * 128), 0, 255) - 128
    item, target = test[0]
    assert np.array_equal(item.numpy(), expected.reshape(128, 128).T)
    assert int(target) == 20


def test_training_items_vary_and_validation_items_do_not(data: Path, args: Namespace) -> None:
    train, test = _loaded("KWS_35", data, args)
    fixed = train.valid_indices[:3]
    moving = torch.arange(3)
    assert not torch.equal(train.batch(moving)[0], train.batch(moving)[0])
    assert torch.equal(train.batch(fixed)[0], train.batch(fixed)[0])
    assert torch.equal(test.batch(moving)[0], test.batch(moving)[0])
    batches = []
    for _ in range(2):
        torch.manual_seed(7)
        batches.append(train.batch(moving)[0])
    assert torch.equal(*batches)


def test_preparation_is_the_same_each_time(data: Path, args: Namespace, tmp_path: Path) -> None:
    _store(tmp_path / "KWS")
    first, again = (_loaded("KWS_20", folder, args)[0].source for folder in (data, tmp_path))
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one, other)
    assert [p.name for p in (tmp_path / "KWS" / "processed").iterdir()] == ["dataset.pt"]


def test_noise_and_shift_stay_within_their_limits() -> None:
    torch.manual_seed(0)
    sound = torch.from_numpy(audio.fit(_tone(1)))[None] * 128
    many = sound.repeat(60, 1)
    noisy = many.clone()
    kws._add_noise(noisy, torch.arange(60) > 0)
    assert torch.equal(noisy[0], sound[0])
    noise = (noisy - many)[1:]
    ratios = 10 * torch.log10(sound.square().mean() / noise.square().mean(1))
    low, high = kws_cache.NOISE_DB
    assert low - 0.2 <= float(ratios.min()) < low + 4
    assert high - 4 < float(ratios.max()) <= high + 0.2


def test_speeds_shorten_and_lengthen() -> None:
    assert kws_cache.speeds(4) == pytest.approx([0.9, 1.1, 0.95, 1.05])
    samples = _tone(1)
    assert len(audio.change_speed(samples, 0.9)) == pytest.approx(16000 / 0.9, abs=1)
    fast = audio.change_speed(samples, 1.1)
    assert len(fast) == pytest.approx(16000 / 1.1, abs=1)
    crossings = [np.count_nonzero(np.diff(np.sign(x))) / len(x) for x in (samples, fast)]
    assert crossings[1] / crossings[0] == pytest.approx(1.1, rel=0.02)


def test_cuts_begin_before_speech_and_do_not_overlap() -> None:
    silence = np.zeros(audio.RATE, np.float32)
    samples = np.concatenate([silence, _tone(0.5) / 10, silence, silence, _tone(2.5), silence])
    cuts = list(audio.speech_cuts(samples))
    assert [len(cut) for cut in cuts] == [audio.LENGTH] * 4
    loud = [int(np.argmax(np.abs(cut) > 0.03)) for cut in cuts[:2]]
    assert all(30 * 128 - 128 <= place <= 31 * 128 for place in loud)
    assert max(float(np.abs(cut).max()) for cut in cuts) == pytest.approx(1)
    assert list(audio.speech_cuts(silence)) == []


def test_everything_is_downloaded_when_nothing_is_there(
    args: Namespace, tmp_path: Path, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = tmp_path / "server"
    _store(server)
    (server / "LibriSpeech").mkdir()
    (server / "librispeech" / "dev-clean").rename(server / "LibriSpeech" / "dev-clean")
    address = serve(server)
    for name, folder, inner in (
        ("COMMANDS", "raw", ""),
        ("BENCHMARK", "raw_test", ""),
        ("LIBRISPEECH", "LibriSpeech", "LibriSpeech"),
    ):
        archive = server / f"{name}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(server / folder, inner or ".")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        monkeypatch.setattr(speech_files, name, Download(address + archive.name, digest))
    train, test = _loaded("KWS_20", tmp_path / "data", args)
    assert len(test) == 35
    assert train.targets.max() == 20


def _wav(path: Path, **changes: int) -> None:
    kind = {"nchannels": 1, "sampwidth": 2, "framerate": 16000, **changes}
    with wave.open(str(path), "wb") as file:
        file.setparams((*kind.values(), 0, "NONE", ""))
        file.writeframes(bytes(64))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"framerate": 8000}, "8000 Hz, 1 channels, 16 bits"),
        ({"nchannels": 2}, "16000 Hz, 2 channels, 16 bits"),
        ({"sampwidth": 1}, "16000 Hz, 1 channels, 8 bits"),
    ],
)
def test_recordings_of_another_kind_are_named(
    changes: dict[str, int], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.wav"
    _wav(path, **changes)
    with pytest.raises(DatasetError, match=message) as info:
        audio.read_recording(path)
    assert (info.value.code, info.value.place) == ("E625", str(path))


def test_every_cut_of_a_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    _wav(path)
    content = path.read_bytes()
    for end in range(len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(DatasetError) as info:
            audio.read_recording(path)
        assert (info.value.code, info.value.place) == ("E613", str(path))


def test_a_chunk_that_never_ends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    _wav(path)
    content = bytearray(path.read_bytes())
    content[16:20] = b"\xff" * 4  # the length of the chunk that tells the kind
    path.write_bytes(content)
    with pytest.raises(DatasetError) as info:
        audio.read_recording(path)
    assert (info.value.code, info.value.place) == ("E613", str(path))


def test_a_damaged_flac_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    path = tmp_path / "a.flac"
    path.write_bytes(b"fLaC but not really")
    with pytest.raises(DatasetError) as info:
        audio.read_recording(path)
    assert (info.value.code, info.value.place) == ("E613", str(path))


@pytest.mark.parametrize("fault", ["cut", "empty", "other", "shape", "lengths", "name"])
def test_a_damaged_cache_is_named(fault: str, data: Path, args: Namespace, tmp_path: Path) -> None:
    _loaded("KWS_20", data, args)
    good = (data / "KWS" / "processed" / "dataset.pt").read_bytes()
    path = tmp_path / "KWS" / "processed" / "dataset.pt"
    path.parent.mkdir(parents=True)
    if fault == "shape":
        torch.save(tuple(torch.zeros(3, 2) for _ in range(4)), path)
    elif fault == "name":  # of a file in the archive, no longer text
        path.write_bytes(good.replace(b"data.pkl", b"\xffata.pkl"))
    elif fault == "lengths":
        torch.save([t[: 2 + (t.dtype == torch.int16)] for t in torch.load(io.BytesIO(good))], path)
    else:
        path.write_bytes({"cut": good[:-200], "empty": b"", "other": b"hello"}[fault])
    with pytest.raises(DatasetError, match="the prepared data") as info:
        _loaded("KWS_20", tmp_path, args)
    assert (info.value.code, info.value.place) == ("E613", str(path))


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("raw/testing_list.txt", "E620"),
        ("raw/zero/*.wav", "E620"),
        ("raw/_background_noise_/*.wav", "E620"),
        ("librispeech/dev-clean/1/2/*.flac", "E620"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_left(
    missing: str, code: str, args: Namespace, tmp_path: Path
) -> None:
    folder = tmp_path / "KWS"
    _store(folder)
    for path in folder.glob(missing):
        path.unlink()
    before = sorted(folder.rglob("*"))
    with pytest.raises(DatasetError) as info:
        _loaded("KWS_20", tmp_path, args)
    assert info.value.code == code
    complete = (folder / "raw" / "_silence_", folder / "raw" / "librispeech")
    left = [p for p in folder.rglob("*") if p not in before and not {p, p.parent} & {*complete}]
    assert left == []


def test_a_recording_that_is_damaged_leaves_no_cache(args: Namespace, tmp_path: Path) -> None:
    _store(tmp_path / "KWS")
    path = tmp_path / "KWS" / "raw" / "yes" / "1.wav"
    path.write_bytes(b"RIFF")
    with pytest.raises(DatasetError) as info:
        _loaded("KWS_20", tmp_path, args)
    assert info.value.place == str(path)
    assert list((tmp_path / "KWS" / "processed").iterdir()) == []


def test_noise_of_every_day_is_mixed_in(data: Path, args: Namespace) -> None:
    _store_noises(data)
    (clean, quiet), (mixed, same), (_, noisy) = (
        _loaded(name, data, args) for name in ("KWS_20", "KWS_20_msnoise_mixed", "MixedKWS20_10dB")
    )
    fixed = clean.valid_indices[:8]
    some = torch.arange(8)
    assert torch.equal(mixed.batch(fixed)[0], clean.batch(fixed)[0])
    assert torch.equal(same.batch(some)[0], quiet.batch(some)[0])
    x = noisy.batch(some)[0]
    assert torch.equal(x, noisy.batch(some)[0])
    signal = quiet.batch(some)[0]
    ratios = 10 * torch.log10(signal.square().mean((1, 2)) / (x - signal).square().mean((1, 2)))
    assert ratios.tolist() == pytest.approx([10] * 8, abs=0.3)


def test_a_share_of_the_items_has_noise() -> None:
    torch.manual_seed(0)
    noise = torch.randint(-9000, 9000, (20000,), dtype=torch.int16)
    mixer = kws_noise.NoiseMixer((noise,), (-5, 9), 0.8, validation=False)
    clean = torch.randn(200, audio.LENGTH)
    validates = torch.arange(200) < 100
    sound = clean.clone()
    mixer(sound, torch.arange(200), validates)
    changed = (sound != clean).any(1)
    assert not changed[:100].any()
    assert 65 <= int(changed.sum()) <= 92
    ratios = -10 * torch.log10((sound - clean)[changed].square().mean(1))
    assert -5.5 < float(ratios.min()) < -2
    assert 6 < float(ratios.max()) < 9.5


@pytest.mark.parametrize(("empty", "code"), [(False, "E620"), (True, "E620")])
def test_missing_noises_are_named(empty: bool, code: str, args: Namespace, tmp_path: Path) -> None:
    folder = tmp_path / "MSnoise" / "raw" / "noise_train"
    if empty:
        folder.mkdir(parents=True)
    with pytest.raises(DatasetError) as info:
        _loaded("KWS_20_msnoise_mixed", tmp_path, args)
    assert (info.value.code, info.value.place) == (code, str(folder))
    assert "MS-SNSD" in info.value.remedy


def test_a_full_disk_is_reported_before_anything_is_prepared(
    args: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _store(tmp_path / "KWS")
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space left") as info:
        _loaded("KWS_20", tmp_path, args)
    assert info.value.filename == str(tmp_path / "KWS" / "processed")
    assert list((tmp_path / "KWS" / "processed").iterdir()) == []


def test_exact_recordings_keep_sixteen_bits(
    data: Path, args: Namespace, integers: Namespace, tmp_path: Path
) -> None:
    (tmp_path / "KWS").symlink_to(data / "KWS")
    _, test = _loaded("KWS_35_unquantized", tmp_path, args)
    _, coarse = _loaded("KWS_35", tmp_path, args)
    exact, item = test[3][0], coarse[3][0]
    assert not torch.equal(exact * 128, (exact * 128).round())
    assert torch.equal(exact * 32768, (exact * 32768).round())
    assert float((exact - item).abs().max()) <= 0.5 / 128
    assert test[3][1] == coarse[3][1]
    _, rounded = _loaded("KWS_35_unquantized", tmp_path, integers)
    assert torch.equal(rounded[0][0], rounded[0][0].round())
