"""COAT at many temperatures: recorded once for each study and read by the page of T and alpha.

`record` fits every variant of `core.coat.sweep` on D2 and keeps the thresholds that it gives to the pool (hours for all studies, a
minute or so for one variant); what ships is small and holds no image. The shipped predictor, whose T falls while it learns, is not
fitted again: it is read from its study, so that it can never disagree with it. Nothing is calibrated here: see
`temperature_grid`.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.coat.predictor import predict_knots
from core.coat.sweep import (
    SHIPPED,
    VARIANTS,
    Variant,
    choose,
    fit_variant,
    out_of_fold_gaps,
    settings_of,
    thinned,
)
from core.lab.gathered import Gathered, gathered
from core.lab.phantom_inputs import STUDY, write_inputs
from core.lab.study import Study, shipped_study
from core.nets.weights import ASSETS, load_tensors, save_tensors
from core.settings import CoatSettings

Say = Callable[[str], None]


def shipped_settings() -> CoatSettings:
    """Settings of the COAT that ships: what every variant shares but for T and its unit."""
    from core.lab.make import VARIANTS as SHIPPED

    return SHIPPED["COAT"]


def record(
    name: str,
    data: Path | None,
    work: Path,
    out: Path = ASSETS,
    say: Say = print,
    variants: Sequence[Variant] = VARIANTS,
    base: CoatSettings | None = None,
    seed: int = 0,
) -> None:
    """Fit COAT at every temperature and write what the page needs.

    A variant that the working folder holds already, fitted with the same settings, is not fitted again; the results in `out` are
    written after each, so a run that is stopped has lost one variant at most.

    Args:
        name: A study with shipped weights.
        data: Folder of the real data set; unused for phantoms.
        work: Folder for the predictor inputs and the finished variants.
        out: Where `scores/{name}-temperatures.npz` and `.json` go.
        say: Called with a line of progress.
        variants: What to fit.
        base: Other settings than the shipped COAT's, for quick trials.
        seed: Of every fit; the shipped predictor has 0.

    Raises:
        DataAbsent, ValueError: As in `core.lab.sources.source`.
    """
    base = shipped_settings() if base is None else base
    inputs = gathered(name, data, work)
    folder = work / f"{name}-temperatures"
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, tuple[np.ndarray, dict[str, Any]]] = {}
    for variant in variants:
        path = folder / f"{variant.name.replace(' ', '-')}.safetensors"
        settings = asdict(settings_of(variant, base)) | {"seed": seed, "inputs": _code(inputs)}
        kept = _kept(path, settings)
        if kept is None:
            began = time.perf_counter()
            fitted = fit_variant(variant, inputs.d2, inputs.quantiles, base, seed)
            gaps = out_of_fold_gaps(fitted, inputs.quantiles)
            members = [row["member"] for row in fitted.history]
            facts: dict[str, Any] = {
                "unit": variant.unit,
                "start": variant.start,
                "end": variant.end,
                "gap": round(fitted.gap, 5),
                "gaps": {f"{a:g}": round(g, 5) for a, g in gaps.items()},
                "epochs": [members.count(k) for k in sorted(set(members))],
                "history": thinned(fitted.history),
                "seconds": round(time.perf_counter() - began, 1),
                "settings": settings,
            }
            kept = predict_knots(fitted.members, inputs.pool).numpy().astype(np.float16), facts
            save_tensors(path, {"knots": torch.from_numpy(kept[0])}, facts)
        found[variant.name] = kept
        say(f"{name}, {variant.name}: out-of-fold gap on D2 {kept[1]['gap']:.4f}, {kept[1]['seconds']:.0f} s")
        _write(out, name, found, base)
    if name == STUDY:
        write_inputs(inputs, out)
    say(f"{name}: {len(found)} temperatures recorded.")


def _code(inputs: Gathered) -> str:
    """Short hash of what a fit sees, so that a base network trained anew is noticed."""
    seen = (inputs.quantiles, inputs.d2.features, inputs.pool.features)
    return hashlib.sha256(b"".join(t.numpy().tobytes() for t in seen)).hexdigest()[:16]


def _kept(path: Path, settings: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]] | None:
    """A finished variant of the working folder, if it was fitted with these settings on these inputs."""
    if not path.exists():
        return None
    tensors, facts = load_tensors(path)
    knots = tensors["knots"].numpy().astype(np.float16)
    return (knots, dict(facts)) if facts.get("settings") == settings else None


def _write(
    out: Path, name: str, found: dict[str, tuple[np.ndarray, dict[str, Any]]], base: CoatSettings
) -> None:
    """Both files, each put in place whole."""
    scores = out / "scores"
    scores.mkdir(parents=True, exist_ok=True)
    part = scores / f"{name}-temperatures.part.npz"
    arrays: dict[str, Any] = {key: knots for key, (knots, _) in found.items()}
    np.savez_compressed(part, **arrays)
    os.replace(part, scores / f"{name}-temperatures.npz")
    facts = {key: {k: v for k, v in f.items() if k != "settings"} for key, (_, f) in found.items()}
    table = {"study": name, "settings": asdict(base), "variants": facts}
    text = scores / f"{name}-temperatures.part.json"
    text.write_text(json.dumps(table, indent=1) + "\n")
    os.replace(text, scores / f"{name}-temperatures.json")


@dataclass(frozen=True)
class Temperatures:
    """COAT at every recorded temperature, for one study.

    Attributes:
        study: The study's name.
        variants: Name -> variant, rising in T, logits before probabilities; the shipped predictor under `SHIPPED`.
        knots: Name -> `(N, A)` thresholds of the pool at `ALPHA_KNOTS`, in logits.
        gaps: Name -> mean out-of-fold gap on D2.
        facts: Name -> what the recording says of it: gaps at each level, epochs a member, history, seconds.
        chosen: Name of the variant with the smallest gap on D2.
        warm: Whether the shipped predictor starts from AT; the others start from nothing.
        note: What is not recorded, as sentences; "" when everything is there.
    """

    study: str
    variants: dict[str, Variant]
    knots: dict[str, torch.Tensor]
    gaps: dict[str, float]
    facts: dict[str, dict[str, Any]]
    chosen: str
    warm: bool
    note: str

    def fixed(self, unit: str) -> dict[str, float]:
        """Names of the fixed temperatures of one unit with their T, rising."""
        return {
            name: v.start
            for name, v in self.variants.items()
            if name != SHIPPED and v.unit == unit and not v.falls
        }

    def chosen_among(self, names: Iterable[str]) -> str | None:
        """The name with the smallest gap on D2 among some; None where none of them is recorded."""
        there = {name: self.gaps[name] for name in names if name in self.gaps}
        return choose(there) if there else None

    @property
    def falling(self) -> tuple[str, ...]:
        """Names of the variants whose T falls, the shipped one last."""
        return (*(n for n, v in self.variants.items() if v.falls and n != SHIPPED), SHIPPED)

    def title(self, name: str) -> str:
        """A variant in words for a table."""
        v = self.variants[name]
        unit = "" if v.unit == "logit" else " in probabilities"
        span = f"T falls from {v.start:g} to {v.end:g}" if v.falls else f"T = {v.start:g}"
        if name == SHIPPED:
            return f"COAT as it ships: {'AT first, ' if self.warm else ''}{span}{unit}"
        return f"COAT, {span}{unit}"


def load_temperatures(folder: Path, study: Study) -> Temperatures:
    """Read the recording of a study from a folder laid out like `assets/`.

    A study that has none, or only a part, gives what there is, the shipped predictor at least, and a note that says how to
    make the rest.

    Raises:
        ValueError: The recording was made for another pool.
    """
    name, scores = study.name, folder / "scores"
    facts: dict[str, dict[str, Any]] = {}
    knots: dict[str, torch.Tensor] = {}
    note = ""
    table = scores / f"{name}-temperatures.json"
    if table.exists():
        whole = json.loads(table.read_text())
        facts = whole["variants"]
        with np.load(scores / f"{name}-temperatures.npz", allow_pickle=False) as z:
            knots = {k: torch.from_numpy(z[k].astype(np.float32)) for k in facts if k in z.files}
        wrong = next((k for k, v in knots.items() if len(v) != len(study.curves)), None)
        if wrong is not None:
            raise ValueError(
                f"The temperatures of {name} were recorded for {len(knots[wrong])} images and its pool has {len(study.curves)}. "
                f"Record them anew: python -m core temperatures {name}"
            )
    found = {k: Variant(facts[k]["unit"], facts[k]["start"], facts[k]["end"]) for k in knots}
    missing = [v.name for v in VARIANTS if v.name not in found]
    if missing:
        what = (
            "No temperature of this study has"
            if not found
            else f"{len(missing)} of {len(VARIANTS)} temperatures of this study have not"
        )
        note = f"{what} been recorded yet. This command does it: python -m core temperatures {name}"
    settings = _settings_of_coat(study)
    if found and _differ(whole["settings"], settings):
        note = f"{note} The recorded temperatures had another budget than the COAT that ships now; record them anew.".strip()
    order = sorted(found, key=lambda k: (found[k].unit != "logit", found[k].start))
    variants = {k: found[k] for k in order} | {
        SHIPPED: Variant(
            str(settings.get("unit", "logit")),
            float(settings["temperature_start"]),
            float(settings["temperature_end"]),
        )
    }
    gaps = {k: float(facts[k]["gap"]) for k in order}
    shipped = study.facts.get("out_of_fold_gap")
    if isinstance(shipped, dict) and "COAT" in shipped:
        gaps[SHIPPED] = float(shipped["COAT"])
    return Temperatures(
        name,
        variants,
        {**{k: knots[k] for k in order}, SHIPPED: study.knots["COAT"]},
        gaps,
        facts,
        choose(gaps) if gaps else SHIPPED,
        settings.get("objective") == "at then coat",
        note,
    )


def _settings_of_coat(study: Study) -> dict[str, Any]:
    written = study.facts.get("thresholds")
    if isinstance(written, dict) and "COAT" in written:
        return dict(written["COAT"])
    return asdict(CoatSettings())


def _differ(recorded: dict[str, Any], shipped: dict[str, Any]) -> bool:
    """Whether two fits differ in more than T, its unit and the start from AT."""
    free = {"unit", "objective", "temperature_start", "temperature_end"}
    return any(recorded[k] != shipped[k] for k in recorded.keys() & shipped.keys() - free)


@lru_cache(maxsize=16)
def load(name: str) -> Temperatures:
    """The recording that ships for a study, read once a process."""
    return load_temperatures(ASSETS, shipped_study(name))
