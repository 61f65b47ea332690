"""A trained long-tail classifier asked about one picture: the same small square as in training, logits, and what it is confused among.

The weights are those of `tail_train.py`. A network knows the classes that it was trained on and nothing else, and at 32 px it sees little: no
medical device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from core.data.tar_images import small_square
from core.lab.tail_batches import to_input
from core.lab.tail_schedule import Schedule, build_classifier
from core.lab.tail_sets import SIDE
from core.nets.build import best_device
from core.nets.weights import load_tensors


@dataclass(frozen=True)
class Classifier:
    """A network with what it needs to be asked.

    Attributes:
        model: In eval mode, frozen.
        classes: K names.
        facts: What its file says of it: set, method, label, seed, counts, colours.
    """

    model: nn.Module = field(repr=False)
    classes: tuple[str, ...]
    facts: dict[str, Any] = field(repr=False)


def load_classifier(path: str | Path) -> Classifier:
    """Rebuild a classifier from the weights of a run.

    Raises:
        FileNotFoundError, ValueError: As in `core.nets.weights.load_tensors`.
    """
    tensors, raw = load_tensors(path)
    facts: dict[str, Any] = dict(raw)
    schedule = Schedule(**{k: facts[k] for k in ("net", "width", "depth", "patch")})
    classes = tuple(facts["classes"])
    model = build_classifier(schedule, len(classes), facts["head"], torch.Generator().manual_seed(0))
    model.load_state_dict(tensors)
    model.requires_grad_(False)
    model.eval()
    return Classifier(model.to(best_device()), classes, facts)


@torch.no_grad()
def classify(classifier: Classifier, pictures: list[np.ndarray | Image.Image]) -> np.ndarray:
    """Logits of pictures of any size, `(N, K)` float32. Each is cut to its middle square and made 32 px wide, as in training."""
    images = torch.from_numpy(np.stack([small_square(p, SIDE) for p in pictures]))
    mean, std = (torch.tensor(classifier.facts[k]) for k in ("mean", "std"))
    device = next(classifier.model.parameters()).device
    return classifier.model(to_input(images, mean, std).to(device)).float().cpu().numpy()
