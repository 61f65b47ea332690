"""What fits on the phantom study need, shipped: features, plug-in thresholds and lesion quantiles of D2, without any picture.

`assets/scores/phantom-inputs.safetensors` holds numbers about drawn pictures, so it may ship; the pool's features ship with its
thresholds. Real studies have no such file. `python -m core temperatures phantom` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from core.coat.features import PredictorInput
from core.lab.gathered import Gathered
from core.nets.weights import ASSETS, load_tensors, save_tensors

STUDY = "phantom"
"""The one study whose inputs ship, and that can be trained on a page."""


def write_inputs(inputs: Gathered, out: Path = ASSETS) -> None:
    """Ship what a fit needs of the phantoms of D2: features, plug-in thresholds and lesion quantiles, in float16."""
    tensors = {"features": inputs.d2.features, "plug_in": inputs.d2.plug_in, "quantiles": inputs.quantiles}
    save_tensors(out / "scores" / f"{STUDY}-inputs.safetensors", tensors, {"study": STUDY, "part": "d2"})


def without_picture(features: torch.Tensor, plug_in: torch.Tensor) -> PredictorInput:
    """Inputs whose small picture is not there, for predictors that look at none."""
    return PredictorInput(torch.zeros(len(features), 4, 1, 1), features.float(), plug_in.float())


def shipped_inputs(folder: Path = ASSETS) -> tuple[PredictorInput, torch.Tensor, PredictorInput]:
    """Inputs of D2, lesion quantiles of D2, and inputs of the pool, all without small pictures.

    Raises:
        FileNotFoundError: A file is missing.
    """
    tensors, _ = load_tensors(folder / "scores" / f"{STUDY}-inputs.safetensors")
    with np.load(folder / "scores" / f"{STUDY}-thresholds.npz", allow_pickle=False) as z:
        pool = without_picture(*(torch.from_numpy(z[k].astype(np.float32)) for k in ("features", "plug-in")))
    return without_picture(tensors["features"], tensors["plug_in"]), tensors["quantiles"].float(), pool
