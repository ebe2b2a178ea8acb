"""What an inference of the quantized network costs; that depends on its places on the chip."""

from __future__ import annotations

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.commands.quantize.arguments import QuantizeOptions


def tell_costs(options: QuantizeOptions, quantized: Checkpoint, model: str | None) -> None:
    """Print and keep time and energy of an inference on the chip with the places of --config-file.

    Without them, print that they are not known, and the command that finds places.
    """
    file = options.config_file
    reason = "places are open" if file is None else _note_costs(options, file, quantized)
    if reason is not None:
        network = f"--config-file {file}" if file else f"--model {model or 'NAME'}"
        print(
            f"Time and energy: not known ({reason}); ai8xize.py --fits {network} "
            f"--checkpoint-file {options.output} tells them"
        )


def _note_costs(options: QuantizeOptions, file: str, quantized: Checkpoint) -> str | None:
    """Print and keep what a network takes as described, or return why that is not known."""
    from ai8xtools.commands.fits import fits_of, note_costs, one_line  # here: few runs need it
    from ai8xtools.synthesis.options import ResolveOptions
    from ai8xtools.synthesis.parse import parse_file

    if not parse_file(file).placed:
        return f"{file} leaves places open"
    resolving = ResolveOptions(checkpoint_file=options.output, tensors=quantized)
    (fit,) = fits_of(lambda _: (file, resolving), (options.network.chip,))
    if not fit.fits:
        return fit.reasons[0]
    note_costs(fit)
    print(one_line([fit]))
    return None
