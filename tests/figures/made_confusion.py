"""Made-up confusion matrices with a tail that flows into the head."""

from __future__ import annotations

import numpy as np

NAMES = ("neutrophil", "eosinophil", "immature granulocyte", "platelet", "monocyte", "basophil")
COUNTS = np.array([1700, 880, 456, 122, 63, 17])


def matrix_of(k: int = 6, seed: int = 0, better: float = 0.0, n: int = 200) -> np.ndarray:
    """Counts `(K, K)`, rows predicted, columns true; recall falls from head to tail."""
    rng = np.random.default_rng(seed)
    recall = np.clip(np.linspace(0.95, 0.35 + better, k), 0, 1)
    errors = rng.dirichlet(np.linspace(3, 0.3, k), k).T
    np.fill_diagonal(errors, 0)
    shares = errors / errors.sum(0) * (1 - recall) + np.diag(recall)
    return np.stack([rng.multinomial(n, shares[:, j] / shares[:, j].sum()) for j in range(k)], 1)


def names_of(k: int) -> list[str]:
    """K names."""
    return [f"class {i + 1}" for i in range(k)]
