"""A sample for people without data at hand: drawn pictures, the logits that a network gave them, and their true masks, as one NPZ.

The pictures are phantoms (nobody's), from seeds that no shipped study uses, and the network is the one of this page that was trained with
cross-entropy. The NPZ shows the layout that uploads like best: `logits` `(N, K, H, W)`, `labels` `(N, H, W)`, and the optional `names` and `classes`.
"""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np

FIRST_SEED = 880_000
FILE = "plumbline-sample.npz"


NETWORK = "margin-phantom-ce"


@lru_cache(maxsize=2)
def sample_npz(count: int = 24) -> bytes:
    """The sample; made once a process.

    Args:
        count: Pictures; every eighth has no lesion.
    """
    import torch

    from core.data.phantoms import draw
    from core.lab.margin_sets import CLASSES, SIDE, square_of
    from core.lab.margin_train import logits_of
    from core.nets.weights import shipped_network

    drawn = [draw(FIRST_SEED + k, size=SIDE, lesion=k % 8 != 7) for k in range(count)]
    squares = [square_of("phantom", p.image, p.mask) for p in drawn]
    logits = logits_of(shipped_network(NETWORK)[0], torch.stack([image for image, _, _ in squares]))
    out = io.BytesIO()
    np.savez_compressed(
        out,
        logits=logits.numpy(),
        labels=np.stack([labels.numpy().astype(np.uint8) for _, labels, _ in squares]),
        names=np.array([f"drawn-{k:03d}" for k in range(count)]),
        classes=np.array(CLASSES["phantom"]),
    )
    return out.getvalue()
