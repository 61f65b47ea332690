"""Plumbline measured against its peers: `python -m benchmarks NAME [options] [--quick] [--json FILE]`.

This is the register and what every benchmark shares. A benchmark is a module with `add_arguments(parser)` and
`run(args) -> dict`; the dict holds `rows` (a list of flat objects) and the figures that sum them up. It may have
`show_result(result)`, which prints instead of all rows, and `record(result, args)`, which keeps what was found. `__main__.py`
adds `name`, `device`, `versions`, `settings` and `seconds`, prints the table and writes the JSON. A new benchmark
adds itself with one line below; the first line of its module is its help.
"""

from __future__ import annotations

BENCHMARKS: dict[str, str] = {
    "coverage": "benchmarks.coverage",
    "control_speed": "benchmarks.control_speed",
    "latency": "benchmarks.latency",
    "aacrc_speed": "benchmarks.aacrc_speed",
    "any_alpha": "benchmarks.any_alpha",
    "ablation": "benchmarks.ablation",
    "margin": "benchmarks.margin",
    "loss_speed": "benchmarks.loss_speed",
    "car": "benchmarks.car",
    "car_speed": "benchmarks.car_speed",
    "tacsc": "benchmarks.tacsc",
    "tacsc_speed": "benchmarks.tacsc_speed",
    "shift": "benchmarks.shift",
    "bfloat16_speed": "benchmarks.bfloat16_speed",
}
"""Name on the command line -> module."""
