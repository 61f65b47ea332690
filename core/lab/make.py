"""Making a study from nothing: parts, base network, score maps, threshold predictors, score table, cards.
Resumable.

Run by `python -m core study NAME`. Work in progress lies in a working folder (not in the project) and every
step that is finished there is not done again; what ships is written into `assets/`. The predictors are
fitted from the float16 weights that ship, so that a visitor's image meets exactly the network that the
table was made with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.coat.features import PredictorInput, lesion_quantiles, predictor_input
from core.coat.fit import Fitted, fit
from core.coat.members import load_members, save_members
from core.coat.predictor import predict_knots
from core.conformal import CoverageCurves
from core.data.splits import content_hash
from core.images.grid import mask_to_grid, mask_to_square, to_grid, to_square
from core.lab.cards import write_cards
from core.lab.sources import Reader, domain_of, source, spec_of, training_of
from core.nets.build import best_device, build, initialise
from core.nets.predict import predict
from core.nets.train import fit_segmenter
from core.nets.weights import ASSETS, load_network, save_network
from core.settings import CoatSettings

Say = Callable[[str], None]

VARIANTS = {
    "AT": CoatSettings(objective="at"),
    "COAT": CoatSettings(objective="at then coat", temperature_start=2.0, temperature_end=0.5),
}
"""Settings of the shipped predictors, chosen on D2 alone: started from AT, COAT's out-of-fold gap was lower in all four studies on which
it was tried (see `assets/results`). The epochs are the same for both."""


def tensors_of(names: tuple[str, ...], read: Reader, side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images `(N, 3, side, side)` and masks `(N, side, side)` of a part, as the network sees them."""
    images, masks = [], []
    for name in names:
        rgb, mask = read(name)
        images.append(to_square(to_grid(rgb), side)[0])
        masks.append(mask_to_square(mask_to_grid(mask), side))
    return torch.stack(images), torch.stack(masks)


def scored_part(
    names: tuple[str, ...], read: Reader, model: torch.nn.Module, side: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray, torch.Tensor]]:
    """Yield `(name, image on its grid, mask on its grid, score map)` of a part."""
    for name in names:
        rgb, mask = read(name)
        yield name, to_grid(rgb), mask_to_grid(mask), predict(model, rgb, side)


def gather(
    names: tuple[str, ...], read: Reader, model: torch.nn.Module, side: int
) -> tuple[PredictorInput, torch.Tensor, CoverageCurves, dict[str, str]]:
    """Everything later steps need of a part: predictor inputs, lesion quantiles, exact curves, content hashes."""
    inputs, quantiles, maps, masks, hashes = [], [], [], [], {}
    for name, image, mask, scores in scored_part(names, read, model, side):
        truth = torch.from_numpy(mask)
        inputs.append(predictor_input([image], [scores]))
        quantiles.append(lesion_quantiles(scores, truth))
        maps.append(scores)
        masks.append(truth)
        hashes[name] = content_hash(image)
    given = PredictorInput(
        *(torch.cat([getattr(i, f) for i in inputs]) for f in ("picture", "features", "plug_in"))
    )
    return given, torch.stack(quantiles), CoverageCurves.from_maps(maps, masks, names), hashes


def mean_dice(curves: CoverageCurves) -> float:
    """Mean Dice at probability 0.5 over images with a lesion, on their own grids: 2 |set and lesion| / (|set| + |lesion|)."""
    zero = torch.zeros(len(curves))
    marked = curves.area(zero)[:, 0] * curves.size
    hits = curves.coverage(zero)[:, 0] * curves.lesion_size
    return float((2 * hits / (marked + curves.lesion_size))[curves.has_lesion].mean())


def fit_methods(given: PredictorInput, quantiles: torch.Tensor, say: Say, seed: int = 0) -> dict[str, Fitted]:
    """Fit AT and COAT with the shipped settings: same inputs, trunk, members and budget."""
    fitted = {}
    for method, settings in VARIANTS.items():
        fitted[method] = fit(given, quantiles, settings, seed)
        say(f"{method}: out-of-fold gap on D2 {fitted[method].gap:.4f}")
    return fitted


def make_study(
    name: str,
    data: Path | None,
    work: Path,
    out: Path = ASSETS,
    say: Say = print,
    epochs: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
) -> None:
    """Make a study, from images to everything in `assets/`.

    Args:
        name: One of `core.lab.sources.NAMES`.
        data: Folder of the real data set.
        work: Folder for the training state; a stopped run goes on from it.
        out: Where the results go, laid out like `assets/`.
        say: Called with a line of progress.
        epochs: Fewer or more epochs than the study's own.
        minutes: Stop training the base network after so many minutes.
        seed: All random acts.
    """
    import time

    began = time.time()
    parts, read = source(name, data, seed, out / "splits")
    for folder in ("splits", "weights", "scores"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    parts.save(out / "splits" / f"{domain_of(name)}.json")
    spec, weights = spec_of(name), out / "weights" / f"{name}.safetensors"
    if not weights.exists():
        settings = training_of(name) if epochs is None else replace(training_of(name), epochs=epochs)
        say(
            f"Training the base network on {len(parts.d1)} images at {spec.side} px, {settings.epochs} epochs."
        )
        model = initialise(build(spec), torch.Generator().manual_seed(seed))
        model = model.to(best_device()).to(memory_format=torch.channels_last)
        train, val = tensors_of(parts.d1, read, spec.side), tensors_of(parts.d1_val, read, spec.side)

        def report(done: int, total: int, now: dict[str, float]) -> None:
            say(
                f"epoch {done}/{total} "
                + " ".join(f"{k} {v:.4f}" for k, v in now.items() if k != "epoch")
                + f" {time.time() - began:.0f} s"
            )

        best = fit_segmenter(
            model, *train, *val, settings, seed, work / f"{name}.safetensors", report, minutes
        )
        save_network(weights, model, spec, {"training": asdict(settings), "validation": best, "seed": seed})
    model, spec, facts = load_network(weights)
    say("Scoring D2 and the pool.")
    d2, pool = (gather(part, read, model, spec.side) for part in (parts.d2, parts.pool))
    dice = mean_dice(pool[2])
    say(f"Dice on the pool {dice:.3f}. Fitting thresholds on {len(parts.d2)} images.")
    fitted = fit_methods(d2[0], d2[1], say, seed)
    save_members(out / "weights" / f"{name}-thresholds.safetensors", fitted, {"base": name, "seed": seed})
    members = load_members(out / "weights" / f"{name}-thresholds.safetensors")
    pool[2].save(out / "scores" / f"{name}.npz")
    knots = {method: predict_knots(m, pool[0]).numpy() for method, m in members.items()}
    table: dict[str, Any] = {
        "plug-in": pool[0].plug_in.numpy(),
        "features": pool[0].features.numpy(),
        **knots,
    }
    np.savez_compressed(out / "scores" / f"{name}-thresholds.npz", **table)
    (out / "scores" / f"{name}.json").write_text(
        json.dumps(
            {
                "study": name,
                "sizes": {k: len(getattr(parts, k)) for k in ("d1", "d1_val", "d2", "pool")},
                "side": spec.side,
                "kind": spec.kind,
                "encoder": spec.encoder,
                "pool_dice": round(dice, 4),
                "validation": facts["validation"],
                "training": facts["training"],
                "out_of_fold_gap": {m: round(f.gap, 4) for m, f in fitted.items()},
                "thresholds": {m: asdict(f.settings) for m, f in fitted.items()},
                "hashes": {k: v[:16] for k, v in pool[3].items()},
            },
            indent=1,
        )
        + "\n"
    )
    for card in write_cards(out, name):
        say(f"Card: {card.name}")
    say(f"Done in {time.time() - began:.0f} s.")
