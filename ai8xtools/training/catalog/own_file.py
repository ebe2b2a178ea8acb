"""A network named FILE:CLASS: a class or function in any file of the user's.

The file is imported, that is, executed.
Source: docs/own-models.md.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import MIB, open_file, where_else
from ai8xtools.training.catalog.discovery import LAYER_KEYWORDS, ModelEntry, choose
from ai8xtools.training.catalog.onnx_file import graph_model, is_graph
from ai8xtools.training.catalog.own_code import (
    OWN,
    complains_itself,
    first_line,
    ready_for,
    remedy_of,
)

_MARK = ".py:"
_MAX_BYTES = 2 * MIB
"""Of the source of a network; Python takes seconds to read as much."""


def is_file_and_class(name: str) -> bool:
    """Return whether a name given to --model is FILE:CLASS."""
    return _MARK in name.lower()


def own_model(name: str, dim: int) -> ModelEntry:
    """Return the network that FILE:CLASS names; `dim` is 1 or 2, the kind of its input.

    What tools tell networks (num_classes, num_channels, dimensions, ...) goes to the parameters of
    these names that there are; other parameters need defaults. Raises InputError E602 for a file
    that cannot be imported, E672 without such a class, E673 for parameters without default.
    """
    file, _, called = name.rpartition(":")
    module = _import(Path(file), name)
    make = getattr(module, called, None)
    if not callable(make):
        networks = [n for n, v in vars(module).items() if _is_network(v, module)]
        remedy = f"Its networks: {', '.join(networks)}." if networks else "It defines no network."
        raise InputError("E672", f"there is no class {called!r} in it", file, remedy)
    signature = inspect.signature(make)
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    open_ended = inspect.Parameter.VAR_KEYWORD in kinds

    def filtered(**keywords: Any) -> Any:
        arguments = {
            k: v
            for k, v in keywords.items()
            if k in signature.parameters or (open_ended and k in LAYER_KEYWORDS and v)
        }
        _refuse_missing(make, signature, arguments, called)
        try:
            return _unwrapped(make(**arguments), called)
        except Exception as exc:
            if complains_itself(exc) or isinstance(exc, AssertionError):
                raise
            raise InputError(
                "E662", f"building {called} fails: {type(exc).__name__}: {first_line(exc)}",
                place_in(Path(file), exc), "Correct the file.",
            ) from exc  # fmt: skip

    return ModelEntry(called.lower(), filtered, 1, dim)


def _unwrapped(model: Any, called: str) -> Any:
    """Return the network in what wraps it: torch.compile, DataParallel, averaging, torch.export.

    Raises InputError E661 for TorchScript, whose data flow cannot be followed.
    """
    from torch import export, fx, jit

    if isinstance(model, jit.ScriptModule):
        raise InputError("E661", f"{called} returns a network that TorchScript compiled", "--model",
                         "Let it return the module of which this one was made.")  # fmt: skip
    if isinstance(model, export.ExportedProgram):
        model = model.module()
    if isinstance(model, fx.GraphModule) and hasattr(model, "_guards_fn"):
        for node in model.graph.find_nodes(op="call_module", target="_guards_fn"):
            model.graph.erase_node(node)  # it wants batches of the size that was exported
        return fx.GraphModule(model, model.graph)  # that of an exported program has no eval()
    inner = getattr(model, "_orig_mod", getattr(model, "module", None))
    wraps = type(model).__module__.startswith("torch.") and hasattr(inner, "forward")
    return _unwrapped(inner, called) if wraps else model


def plain_name(name: str) -> str:
    """Return what checkpoints call a network: for FILE:CLASS the class in lower case."""
    return name.rpartition(":")[2].lower() if is_file_and_class(name) else name


def named_model(
    name: str, models: Callable[[], Mapping[str, ModelEntry]], size: tuple[int, ...]
) -> ModelEntry:
    """Return the network of a name among `models`, of FILE:CLASS or of an ONNX file, for inputs
    (C, H, W) or (C, L, 1)."""
    if is_file_and_class(name):
        return own_model(name, 1 if size[-1] == 1 and size[1] > 1 else 2)
    if is_graph(name):
        return graph_model(name)
    return choose(models(), name.lower(), "--model")


class _Anew(SourceFileLoader):
    """Compiles a file from its source: cached bytecode may be stale for a second."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the file."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _import(file: Path, name: str) -> ModuleType:
    """Import a file; its folder is searched for what it imports."""
    if not file.is_file():
        raise InputError(
            "E602", "the file does not exist", str(file), f"{where_else(file)} See --model {name}."
        )
    open_file(file, _MAX_BYTES).close()
    key = f"{OWN}{file.stem}"
    loader = _Anew(key, str(file))  # whatever the name ends with
    spec = importlib.util.spec_from_file_location(key, file, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        ready_for(file)
        spec.loader.exec_module(module)
    except Exception as exc:
        del sys.modules[key]
        raise InputError(
            "E602",
            f"the file cannot be imported: {type(exc).__name__}: {first_line(exc)}",
            place_in(file, exc),
            remedy_of(exc, "Correct the file; it is executed as it stands."),
        ) from exc
    finally:
        sys.path.pop(0)
    return module


def place_in(file: Path, exc: BaseException) -> str:
    """Return FILE:LINE of the innermost call in the file of an exception, else the file."""
    if isinstance(exc, SyntaxError) and exc.filename and exc.lineno:
        return f"{exc.filename}:{exc.lineno}"
    lines = [
        line
        for frame, line in traceback.walk_tb(exc.__traceback__)
        if Path(frame.f_code.co_filename).resolve() == file.resolve()
    ]
    return f"{file}:{lines[-1]}" if lines else str(file)


def _is_network(value: Any, module: ModuleType) -> bool:
    """Return whether a value is a class of modules that the file defines."""
    from torch import nn

    ours = isinstance(value, type) and value.__module__ == module.__name__
    return ours and issubclass(value, nn.Module)


def _refuse_missing(
    make: Callable[..., Any], signature: inspect.Signature, arguments: dict[str, Any], called: str
) -> None:
    """Raise InputError E673 for parameters that have neither a value nor a default."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    missing = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in kinds
        and name not in arguments
    ]
    if missing:
        raise InputError(
            "E673",
            f"{called} needs arguments that are not known here: {', '.join(missing)}",
            _definition(make),
            "Give them defaults, or name a function without arguments that returns the network.",
        )


def _definition(make: Callable[..., Any]) -> str | None:
    """Return FILE:LINE where a class or function begins."""
    try:
        return f"{inspect.getsourcefile(make)}:{inspect.getsourcelines(make)[1]}"
    except (OSError, TypeError):
        return None
