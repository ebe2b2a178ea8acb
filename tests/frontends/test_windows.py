"""Pooling with the windows and strides that the chip has, over all small ones."""

from __future__ import annotations

import itertools

import numpy as np

from ai8xtools.frontends.windows import stages


def positions(size: int, window: int, stride: int, dilation: int = 1) -> list[int]:
    """Return where windows begin along an axis."""
    return list(range(0, size - dilation * (window - 1), stride))


def test_one_stride_is_found_wherever_there_is_one() -> None:
    """It leaves all windows where they are, those of a map that is hardly larger included."""
    axes = [(n, w, s) for n in range(1, 6) for w in range(1, n + 1) for s in range(1, 5)]
    for (n, w, s), (m, v, t) in itertools.product(axes, repeat=2):
        settings = {"window": (w, v), "stride": (s, t), "dilation": (1, 1), "padding": (0, 0)}
        (found,) = stages(settings, (1, n, m))
        wanted = positions(n, w, s), positions(m, v, t)
        strides = [k for k in range(1, 8) if (positions(n, w, k), positions(m, v, k)) == wanted]
        assert found["window"] == (w, v)
        if strides:
            assert found["stride"] == (strides[0],) * 2
        else:
            assert found["stride"] == (s, t)


def test_dilation_and_borders_belong_to_the_windows() -> None:
    for n, w, s, d, p in itertools.product((5, 6, 7), (2, 3), (1, 2, 4, 5, 9), (1, 2), (0, 1)):
        settings = {"window": (w,), "stride": (s,), "dilation": (d,), "padding": (p,)}
        (found,) = stages(settings, (1, n))
        wanted = positions(n + 2 * p, w, s, d)
        assert positions(n + 2 * p, w, found["stride"][0], d) == wanted


def test_large_windows_are_pooled_in_steps() -> None:
    """Their maxima are those of the whole window, also where the map ends before the next one."""
    random = np.random.default_rng(0)
    divided = 0
    for n, w in itertools.product(range(5, 26), range(5, 13)):
        if w > n:
            continue
        data = random.integers(-128, 128, n)
        wanted = [data[a : a + w].max() for a in positions(n, w, w)]
        settings = {"window": (w,), "stride": (w,), "dilation": (1,), "padding": (0,)}
        parts = stages(settings, (1, n), limit=4)
        divided += len(parts) > 1
        for part in parts:
            (v,), (s,) = part["window"], part["stride"]
            data = np.array([data[a : a + v].max() for a in positions(len(data), v, s)])
        assert data.tolist() == wanted
    assert divided > 50
