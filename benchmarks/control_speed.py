"""The exact shift against MAPIE's segmentation controller and against one sort: time, memory, and the same threshold.

MAPIE calibrates CRC on a grid of thresholds, with strict >; Plumbline finds the exact quantile, with >=. Both get the
same maps: logits here, their sigmoid there. Each runs in a process of its own, in turns, and tells its time and the peak
of its resident memory above what it held after imports and data. `ratio_sort` sets `calibrate` against one `torch.sort`
of the same lesion scores, in turns in this process. All sides run on one thread and their time is processor time, so
that other work on the machine disturbs little. It is no test of the promise (`tests/conformal`), and no benchmark of
coverage (`coverage.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

OURS, MAPIE, MAPIE_BATCHES = "Plumbline", "MAPIE", "MAPIE, 10 maps at a time"
STEP = 0.01
"""Step of MAPIE's default grid of thresholds, in probability."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--maps", type=int, default=200, help="maps that both tools calibrate on (default 200)"
    )
    parser.add_argument("--side", type=int, default=128, help="side of these maps in pixels (default 128)")
    parser.add_argument(
        "--sort-maps", type=int, default=500, help="maps of the comparison with a sort (default 500)"
    )
    parser.add_argument(
        "--sort-side", type=int, default=256, help="side of these maps in pixels (default 256)"
    )
    parser.add_argument(
        "--alpha", type=float, default=0.1, help="share of a lesion that may be missed (default 0.1)"
    )
    parser.add_argument(
        "--repeats", type=int, default=None, help="turns of each tool (default 3; 1 with --quick)"
    )
    parser.add_argument("--seed", type=int, default=0, help="draw of the maps (default 0)")


def make_maps(n: int, side: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw maps that behave like those of a network on polyps.

    Args:
        n: Number of maps.
        side: Side in pixels.
        seed: The draw.

    Returns:
        Logits `(n, side, side)` float32 within plus or minus 15, and masks of the same shape, bool: tilted ellipses on 3 % to 40 % of the image.
    """
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side].astype(np.float32) / side
    logits, masks = np.empty((n, side, side), np.float32), np.empty((n, side, side), bool)
    for i in range(n):
        share = float(np.exp(rng.uniform(math.log(0.03), math.log(0.40))))
        stretch = float(np.exp(rng.uniform(-0.35, 0.35)))
        a, b = math.sqrt(share / math.pi) * stretch, math.sqrt(share / math.pi) / stretch
        cx, cy = rng.uniform(min(a, 0.5), max(1 - a, 0.5)), rng.uniform(min(b, 0.5), max(1 - b, 0.5))
        turn = rng.uniform(0, math.pi)
        u = ((x - cx) * math.cos(turn) + (y - cy) * math.sin(turn)) / a
        v = ((y - cy) * math.cos(turn) - (x - cx) * math.sin(turn)) / b
        inside = 1 - np.sqrt(u * u + v * v)
        masks[i] = inside >= 0
        # The network sees the lesion a little displaced, more or less sure of itself, and sometimes hardly at all.
        sharp, bias = rng.gamma(4.0, 2.5), rng.normal(0.5, 1.5)
        doubt = rng.normal(0, 1.2, (side // 8, side // 8)).astype(np.float32).repeat(8, 0).repeat(8, 1)
        doubt = np.pad(doubt, ((0, side - doubt.shape[0]), (0, side - doubt.shape[1])), mode="edge")
        logits[i] = np.clip(sharp * inside + bias + doubt + rng.normal(0, 0.3, (side, side)), -15, 15)
    return logits, masks


def _memory_mib(reset: bool = False) -> float:
    """Peak of this process's resident memory in MiB; with `reset`, the peak is first lowered to what is held now (Linux only)."""
    status = Path("/proc/self/status")
    if status.exists():
        if reset:
            # without the right to lower it the baseline is the peak so far, and the difference a lower bound
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")
        line = next((row for row in status.read_text().splitlines() if row.startswith("VmHWM")), None)
        if line is not None:
            return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024) if sys.platform == "darwin" else peak / 1024


def _job(tool: str, logits: np.ndarray, masks: np.ndarray, alpha: float) -> Callable[[], float]:
    """Imports and data of one tool; what is returned does the work once and gives the threshold as a probability."""
    if tool == OURS:
        import torch

        from core.conformal import CoverageCurves, calibrate

        scores, truth = torch.from_numpy(logits), torch.from_numpy(masks)

        def work() -> float:
            curves = CoverageCurves.from_maps(scores, truth)
            shift = calibrate(curves, torch.zeros(len(curves)), alpha).shift
            return 1 / (1 + math.exp(shift)) if math.isfinite(shift) else 0.0

        return work
    from mapie.risk_control import SemanticSegmentationController

    p = (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)[:, None]
    y = masks.reshape(len(masks), -1)
    batch = 10 if tool == MAPIE_BATCHES else len(p)

    def work() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tool = SemanticSegmentationController(
                predict_function=lambda maps: maps, risk="recall", method="crc", target_level=1 - alpha
            )
            for i in range(0, len(p), batch):
                tool.compute_risks(p[i : i + batch], y[i : i + batch])
            tool.compute_best_predict_param()
        return float(tool.best_predict_param[0])

    return work


def child(tool: str, maps: int, side: int, alpha: float, seed: int, turns: int) -> dict[str, float]:
    """What runs in a process of its own: seconds (median of the turns), peak memory of the first turn above the baseline, threshold."""
    import torch

    torch.set_num_threads(1)
    logits, masks = make_maps(maps, side, seed)
    small = 4
    _job(
        tool, logits[:small], masks[:small], 0.5
    )()  # warms imports and thread pools; a size that moves no peak
    work = _job(tool, logits, masks, alpha)
    gc.collect()
    before = _memory_mib(reset=True)
    seconds = []
    peak = 0.0
    for turn in range(turns):
        began = time.process_time()
        threshold = work()
        seconds.append(time.process_time() - began)
        if turn == 0:
            peak = _memory_mib() - before
    return {"seconds": statistics.median(seconds), "peak_mib": peak, "threshold": threshold}


def _run_child(tool: str, args: argparse.Namespace, turns: int) -> dict[str, float]:
    facts = [tool, args.maps, args.side, args.alpha, args.seed, turns]
    code = "import sys, json; from benchmarks.control_speed import child; print(json.dumps(child(*json.loads(sys.argv[1]))))"
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(facts)], capture_output=True, text=True, cwd=root, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{tool} ended with an error:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def against_sort(maps: int, side: int, alpha: float, seed: int, repeats: int) -> dict[str, float]:
    """Time of `calibrate` on ready curves and of one `torch.sort` of the same lesion scores, in turns.

    Returns:
        Medians in seconds: `calibrate` (one threshold for all), `calibrate_own` (each image its own), `sort`; `ratio`, `ratio_own`: medians of the
        ratios of neighbouring turns; `scores`: how many lesion scores there are.
    """
    import torch

    from core.conformal import CoverageCurves, calibrate

    parts = []
    for first in range(0, maps, 50):  # in pieces: the maps of all pixels are not needed at once
        logits, masks = make_maps(min(50, maps - first), side, seed + 1 + first)
        parts.append(CoverageCurves.from_maps(torch.from_numpy(logits), torch.from_numpy(masks)))
    curves = CoverageCurves.merge(parts)
    del parts
    scores = curves.lesion.value.clone()
    constant = torch.zeros(maps)
    own = torch.randn(maps, generator=torch.Generator().manual_seed(seed))

    threads = torch.get_num_threads()

    def timed(work: Callable[[], Any]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    turns = []
    torch.set_num_threads(1)
    for turn in range(repeats + 1):
        one = timed(lambda: calibrate(curves, constant, alpha))
        sort = timed(lambda: torch.sort(scores))
        each = timed(lambda: calibrate(curves, own, alpha))
        if turn:  # the first turn only warms caches and thread pools
            turns.append((one, each, sort))
    torch.set_num_threads(threads)
    one, each, sort = (statistics.median(t) for t in zip(*turns, strict=True))
    return {
        "calibrate": one,
        "calibrate_own": each,
        "sort": sort,
        "ratio": statistics.median(t[0] / t[2] for t in turns),
        "ratio_own": statistics.median(t[1] / t[2] for t in turns),
        "scores": len(scores),
    }


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure. See BENCHMARKS.md of the design notes for the keys."""
    repeats = args.repeats or (1 if args.quick else 3)
    seen: dict[str, list[dict[str, float]]] = {OURS: [], MAPIE: [], MAPIE_BATCHES: []}
    for turn in range(repeats):
        for tool in (OURS, MAPIE) if turn or args.quick else tuple(seen):
            seen[tool].append(_run_child(tool, args, 5 if tool == OURS else 1))
    rows = [
        {
            "tool": tool,
            "maps": args.maps,
            "side": args.side,
            "seconds": statistics.median(s["seconds"] for s in found),
            "peak_mib": statistics.median(s["peak_mib"] for s in found),
            "threshold": found[0]["threshold"],
        }
        for tool, found in seen.items()
        if found
    ]
    pairs = list(zip(seen[OURS], seen[MAPIE], strict=True))
    sort = against_sort(args.sort_maps, args.sort_side, args.alpha, args.seed, 3 if args.quick else 15)
    size = {"maps": args.sort_maps, "side": args.sort_side}
    rows += [
        {"tool": "Plumbline, calibrate, one threshold", **size, "seconds": sort["calibrate"]},
        {"tool": "Plumbline, calibrate, each image its own", **size, "seconds": sort["calibrate_own"]},
        {"tool": "torch.sort of the lesion scores", **size, "seconds": sort["sort"]},
    ]
    return {
        "rows": rows,
        "ratio_time": statistics.median(m["seconds"] / o["seconds"] for o, m in pairs),
        "ratio_memory": statistics.median(m["peak_mib"] / max(o["peak_mib"], 1.0) for o, m in pairs),
        "threshold_difference": seen[OURS][0]["threshold"] - seen[MAPIE][0]["threshold"],
        "grid_step": STEP,
        "ratio_sort": sort["ratio"],
        "ratio_sort_own": sort["ratio_own"],
        "lesion_scores": sort["scores"],
        "settings": {"threads": 1, "time": "processor seconds", "repeats": repeats},
    }
