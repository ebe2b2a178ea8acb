"""Networks of several frames, of which the chip computes one at a time.

Such a network folds the frames into the batch, computes the features of each alike, and unfolds
them again. The shapes here are those of one frame up to there.
Source: docs/own-models.md, "Networks of several frames".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, fx, nn

_RESHAPING = ("flatten", "unflatten", "view", "reshape")
_MEASURING = ("size", "dim", "getattr")
_MOST_FRAMES = 64


class NoFramesError(ValueError):
    """A network does not compute features of single frames."""


def trace_frames(model: nn.Module, graph: Any, frame: Tensor, count: int | None) -> int:
    """Record the shapes of a network that takes [1, T, ...] for frames like `frame` [1, ...].

    Without a `count` T is the least that goes through the network. Each node gets `meta["shape"]`;
    the one that folds the frames into the batch gets `meta["folds"]`, the one that unfolds the
    features `meta["frames"]`, which is T. Returns T; raises NoFramesError where no frames are
    folded and unfolded, else what the network raises.
    """
    features: dict[fx.Node, Any] = {}
    module = fx.GraphModule(model, graph)
    tried = range(2, _MOST_FRAMES + 1) if count is None else (count,)
    for frames in tried:
        run = _FrameShapes(module, frames, features)
        try:
            run.run(frame[None].expand(1, frames, *frame.shape[1:]))
        except Exception as exc:
            if not run.unfolded:
                raise NoFramesError(str(exc)) from exc
            if frames == tried[-1]:
                raise
        else:
            if not run.unfolded:
                raise NoFramesError("no frames are folded into the batch and unfolded again")
            return frames
    raise NoFramesError("there are no frames")


class _FrameShapes(fx.Interpreter):
    """Computes one frame in place of all of them, up to where their features are unfolded.

    `features` holds the features that were computed before.
    """

    def __init__(self, module: fx.GraphModule, frames: int, features: dict[fx.Node, Any]) -> None:
        super().__init__(module)
        self.folded = self.unfolded = False
        self._frames = frames
        self._features = features
        self._of_frame: set[fx.Node] = set()

    def run_node(self, n: fx.Node) -> Any:
        """Compute a node."""
        n.meta.pop("folds", None)
        n.meta.pop("frames", None)
        inside = any(source in self._of_frame for source in n.all_input_nodes)
        result = self._in_frame(n) if inside else super().run_node(n)
        if n.op != "placeholder" and not self.folded and self._folds(n, result):
            self.folded = n.meta["folds"] = True
            self._of_frame.add(n)
            result = result[:1]
        n.meta["shape"] = tuple(result.shape) if isinstance(result, Tensor) else None
        n.meta["parts"] = isinstance(result, list | tuple) and any(
            isinstance(part, Tensor) for part in result
        )
        return result

    def _in_frame(self, n: fx.Node) -> Any:
        """Compute what takes features of one frame; what reshapes sees those of all."""
        name = getattr(n.target, "__name__", str(n.target))
        if n.op == "call_module" or name not in (*_RESHAPING, *_MEASURING):
            if n not in self._features:
                self._features[n] = super().run_node(n)
            self._of_frame.add(n)
            return self._features[n]
        for source in n.all_input_nodes:
            if source in self._of_frame and isinstance(self.env[source], Tensor):
                value = self.env[source]
                self.env[source] = value.expand(self._frames, *value.shape[1:])
        result = super().run_node(n)
        for source in n.all_input_nodes:
            if source in self._of_frame and isinstance(self.env[source], Tensor):
                self.env[source] = self.env[source][:1]
        if not isinstance(result, Tensor):
            return result
        if tuple(result.shape[:2]) == (1, self._frames):
            n.meta["frames"] = self._frames
            self.unfolded = True
            return result
        self._of_frame.add(n)
        return result[:1]

    def _folds(self, n: fx.Node, result: Any) -> bool:
        """Return whether a node makes a batch of the frames."""
        sources = [self.env.get(source) for source in n.all_input_nodes]
        return isinstance(result, Tensor) and any(
            isinstance(x, Tensor)
            and tuple(x.shape[:2]) == (1, self._frames)
            and tuple(result.shape) == tuple(x.shape[1:])
            for x in sources
        )
