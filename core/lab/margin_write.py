"""Writing the recorded comparison of losses from finished runs: figures, histograms, tables and the weights of seed 0.

It measures (`margin_measure`, `margin_bridge`) and writes what `margin_record` reads; it trains nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from core.lab.margin_bridge import bridge
from core.lab.margin_measure import Measured, measure, measure_run, read_logits
from core.lab.margin_record import COMMAND, DICE_SLACK, WHOLE, read_tables
from core.lab.margin_sets import MARGIN_SETS, REAL_SETS, Labelled, load_set
from core.lab.margin_train import MARGINS, PHANTOM_MARGIN, SEEDS, Run, Schedule, run_of
from core.nets.weights import ASSETS

Say = Callable[[str], None]


def chosen_margin(rows: Iterable[dict[str, Any]]) -> float:
    """The margin that the validation part would take: lowest foreground ECE within `DICE_SLACK` of the best Dice.

    Args:
        rows: One for each margin, with `margin`, `dice` and `ece_fg` on the validation part.
    """
    rows = list(rows)
    best = max(r["dice"] for r in rows)
    return float(
        min((r for r in rows if r["dice"] >= best - DICE_SLACK), key=lambda r: r["ece_fg"])["margin"]
    )


def validation_rows(name: str, work: Path, parts: dict[str, Labelled]) -> list[dict[str, Any]]:
    """One row for each margin whose run of seed 0 is finished: `data`, `margin`, and `dice`, `ece_fg`, `ece_all` on the validation part."""
    rows: list[dict[str, Any]] = []
    if name == "phantom":  # there nothing is chosen
        return rows
    for m in MARGINS:
        path = work / f"{run_of(name, 'margin', 0, m).key}.npz"
        if path.exists():
            val = measure(read_logits(path, "val"), parts["val"], distances=False).figures
            rows.append(
                {"data": name, "margin": m} | {k: round(val[k], 5) for k in ("dice", "ece_fg", "ece_all")}
            )
    return rows


def write(
    data: Path | None,
    work: Path,
    out: Path = ASSETS,
    say: Say = print,
    sets: tuple[str, ...] = MARGIN_SETS,
    draws: int = 1000,
) -> None:
    """Measure all finished runs and write what ships. Runs that are not there are left out and named.

    Args:
        data: Folder of the real sets.
        work: Folder of the runs.
        out: Where the results go, laid out like `assets/`.
        say: Called with a line of progress.
        sets: Sets to write; the tables keep the rows of the others.
        draws: Redrawn halves of the pool in the bridge.
    """
    kept = read_tables(out) if (out / "results" / "margin.json").exists() else {}
    tables = {
        key: [r for r in kept.get(key, []) if r["data"] not in sets]
        for key in ("seeds", "bridge_seeds", "choices")
    }
    for name in sets:
        parts = load_set(name, data, work / "sets")
        found = _runs(name, work, parts, tables, say)
        arrays: dict[str, np.ndarray] = {}
        for key, run, scaled in found:
            facts = _measured(run, key, scaled, parts, work, say)
            tables["seeds"].append(
                {"data": name, "loss": key, "margin": facts["margin"], "seed": run.seed}
                | {"temperature": round(facts["temperature"], 4), "loss_first": facts["history"][0]}
                | {"loss_last": facts["history"][-1]}
                | {k: round(v, 5) for k, v in facts["measured"].figures.items()}
            )
            if run.seed == 0:
                arrays |= _arrays(key, facts["measured"])
                arrays[f"{key}/facts"] = np.array(
                    [facts["temperature"], np.nan if facts["margin"] is None else facts["margin"]]
                )
                _ship(run, work, out)
            if name in REAL_SETS and key != "SVLS":
                t, path = facts["temperature"], work / f"{run.key}.npz"
                d2, pool = (read_logits(path, p) / t for p in ("d2", "pool"))
                tables["bridge_seeds"] += [
                    {"data": name, "loss": key, "seed": run.seed} | {k: _short(v) for k, v in row.items()}
                    for row in bridge(d2, parts["d2"], pool, parts["pool"], draws=draws)
                ]
        if arrays:
            arrays["names"] = np.array(parts["pool"].names, dtype=np.str_)
            _write_arrays(out / "margin" / f"{name}.npz", arrays)
        _write_tables(out, tables)


def _runs(
    name: str, work: Path, parts: dict[str, Labelled], tables: dict[str, list[dict[str, Any]]], say: Say
) -> list[tuple[str, Run, bool]]:
    """Finished runs of a set as (key, run, divided by its temperature), the margin chosen on seed 0's validation part."""
    rows = validation_rows(name, work, parts)
    m = chosen_margin(rows) if rows else PHANTOM_MARGIN
    tables["choices"] += [r | {"chosen": r["margin"] == m} for r in rows]
    found = []
    for seed in SEEDS:
        for loss in ("CE", "LS", "SVLS", "focal", "ECP", "margin"):
            run = run_of(name, loss, seed, m if loss == "margin" else None)
            if not (work / f"{run.key}.npz").exists():
                if (loss != "SVLS" or name == "phantom") and (seed == 0 or name != "phantom"):
                    say(f"{run.key} is not there; left out.")
                continue
            found.append((loss, run, False))
            if loss == "CE":
                found.append(("CE + T", run, True))
    return found


def _measured(
    run: Run, key: str, scaled: bool, parts: dict[str, Labelled], work: Path, say: Say
) -> dict[str, Any]:
    facts = measure_run(work / f"{run.key}.npz", parts, scaled)
    f = facts["measured"].figures
    say(
        f"{run.data}, {key}, seed {run.seed}: Dice {f['dice']:.3f}, HD95 {f['hd95']:.1f} px, "
        f"ECE {f['ece_fg']:.4f} foreground, {f['ece_all']:.4f} all"
    )
    return facts | {"margin": run.loss.margin if run.loss.loss == "margin" else None}


def _ship(run: Run, work: Path, out: Path) -> None:
    target = out / "weights" / f"margin-{run.data}-{run.loss.loss.lower()}.safetensors"
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes((work / f"{run.key}.safetensors").read_bytes())
    os.replace(part, target)


def _arrays(key: str, m: Measured) -> dict[str, np.ndarray]:
    out = {f"{key}/distances": m.distances, f"{key}/distances_right": m.distances_right}
    out[f"{key}/dice"] = m.dice.astype(np.float32)
    for scope, tables in m.tables.items():
        stacked = [t.to_arrays() for t in tables]
        for field in stacked[0]:
            a = np.stack([s[field] for s in stacked])
            out[f"{key}/{scope}/{field}"] = a.astype(np.uint32 if field in WHOLE else np.float32)
    return out


def _write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)  # type: ignore[arg-type]
    os.replace(part, path)


def _write_tables(out: Path, tables: dict[str, list[dict[str, Any]]]) -> None:
    path = out / "results" / "margin.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"command": COMMAND, "schedule": asdict(Schedule()), "margins": MARGINS} | tables
    part = path.with_suffix(".part")
    part.write_text(json.dumps(whole, indent=0) + "\n")
    os.replace(part, path)


def _short(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value
