"""The output of every run."""

from __future__ import annotations

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.emulator import NetworkRun
from ai8xtools.emulator.report.cycles import format_cycles, network_cycles
from ai8xtools.emulator.report.describe import describe_layer
from ai8xtools.emulator.state.memory import Memory

WRONG_REGISTERS = "Registers are wrong, whatever the result: see the errors above."


def show_run(executed: NetworkRun, memory: Memory, options: EmulateOptions, passed: bool) -> None:
    """Show the layers of a run and what is suspicious about them; notes if it has not passed."""
    configurations = [layer.config for layer in executed.layers]
    if options.verbose:
        for config in configurations:
            print(describe_layer(config))
    if options.cycles:
        print("\n".join(format_cycles(network_cycles(memory, configurations))))
    for finding in executed.findings:
        if options.verbose or not passed or not finding.harmless:
            print(f"{finding.severity.value}: {finding}")
