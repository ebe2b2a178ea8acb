"""The report as one HTML page: text, tables and pictures, no scripts, nothing from elsewhere."""

from __future__ import annotations

from ai8xtools.synthesis.emit.report_graph import cut_name, graph_picture
from ai8xtools.synthesis.emit.report_maps import kernel_picture, memory_picture
from ai8xtools.synthesis.emit.report_pictures import pictures
from ai8xtools.synthesis.emit.report_time import bar_picture
from ai8xtools.synthesis.report.values import Report
from ai8xtools.writing.templates import render
from device.chip import MOST_PRODUCTS

_GOLDEN_ANGLE = 137.508
"""Degrees between the hues of successive layers: neighbours differ, and no hue comes twice soon."""
_FIRST_HUE = 210
"""Blue: red is what goes wrong."""


def report_page(report: Report) -> str:
    """Return the page; it is complete in itself and follows the reader's light or dark scheme."""
    return render(
        "report/page.html.j2",
        report=report,
        names={layer.index: layer.name for layer in report.layers},
        short_names={layer.index: cut_name(layer.name or "", 16) for layer in report.layers},
        hues={
            layer.index: round(_FIRST_HUE + layer.index * _GOLDEN_ANGLE) % 360
            for layer in report.layers
        },
        graph=graph_picture(report),
        kernels=kernel_picture(report),
        memory=memory_picture(report),
        pictures=pictures(report),
        time=bar_picture(report.time_line, report, "%.3f ms"),
        spent=bar_picture(report.energy_parts, report, "%.3g uJ"),
        most_products=MOST_PRODUCTS,
        energy=lambda joules: joules.in_units("J"),
    )
