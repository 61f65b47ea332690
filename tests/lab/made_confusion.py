"""Small made-up long-tail records: recalls that fall from head to tail and rise over epochs, errors that flow to the head and to one neighbour.

Classes stand in the files' order, not in that of frequency, as real records do.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.data.tar_images import DIAGNOSES
from core.lab.tail_methods import METHODS, method_of
from core.lab.tail_record import FIGURES, final_figures, singular_values, write_run
from core.lab.tail_shelf import TailRecord

NAMES = {
    "pbc": (
        "basophil",
        "eosinophil",
        "erythroblast",
        "ig",
        "lymphocyte",
        "monocyte",
        "neutrophil",
        "platelet",
    ),
    "ham10000": DIAGNOSES,
    "cifar10": (*("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),),
    "tiny": tuple(f"{k:03d}_n{1_000_000 + 7 * k:08d}" for k in range(200)),
}
COUNTS = {
    "pbc": (17, 880, 33, 456, 9, 120, 1700, 236),
    "ham10000": (195, 306, 654, 69, 662, 3990, 85),
    "cifar10": tuple(int(425 * 10 ** (-k * 2 / 9)) + 1 for k in range(10)),
    "tiny": tuple(int(425 * 10 ** (-k * 2 / 199)) + 1 for k in range(200)),
}
KEPT = (0, 3, 9, 19, 39)
LOWEST = {"ce": 0.3, "balanced": 0.4, "adjusted": 0.6, "car-paper": 0.36, "car-count": 0.5}
"""Test recall of the rarest class at the end."""


def matrix(recall: np.ndarray, images: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Counts with these recalls; two thirds of a class's errors go to the next more frequent class, the rest to the most frequent one."""
    k = len(recall)
    out = np.zeros((k, k), np.int64)
    order = np.argsort(rank)
    for j in range(k):
        wrong = int(round((1 - recall[j]) * images[j]))
        out[j, j] = images[j] - wrong
        near = order[max(rank[j] - 1, 0)] if rank[j] else order[min(1, k - 1)]
        out[near, j] += (2 * wrong) // 3
        out[order[0] if rank[j] else order[min(1, k - 1)], j] += wrong - (2 * wrong) // 3
    return out


@lru_cache(maxsize=64)
def record(
    method: str = "ce", data: str = "pbc", lowest: float | None = None, no_test: tuple[int, ...] = ()
) -> TailRecord:
    """One run. `lowest` is the rarest class's test recall at the end, `no_test` classes (by rank) without a test image."""
    counts = np.array(COUNTS[data])
    k = len(counts)
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(k, int)
    rank[order] = np.arange(k)
    low = LOWEST[method] if lowest is None else lowest
    end = 0.95 + (low - 0.95) * rank / (k - 1)
    tested = np.full(k, 60 if k <= 10 else 20)
    tested[order[list(no_test)]] = 0
    grown = [(e + 2) / (KEPT[-1] + 2) for e in KEPT]
    test = np.stack([matrix(end * g**0.3, tested, rank) for g in grown])
    train = np.stack([matrix(1 - 0.2 * (1 - g) * (1 - end), counts, rank) for g in (grown[0], grown[2], 1.0)])
    every = np.linspace(2.0, 0.4, KEPT[-1] + 1)
    singular = np.stack(
        [singular_values(test[np.searchsorted(KEPT, e, "right") - 1]) for e in range(KEPT[-1] + 1)]
    )
    return TailRecord(
        data=data,
        method=method,
        title=METHODS[method].label,
        seed=0,
        counts=counts,
        classes=NAMES[data],
        epochs=np.array(KEPT),
        test=test.astype(np.uint16),
        train_epochs=np.array((0, 9, 39)),
        train=train.astype(np.uint16),
        losses=dict.fromkeys(("train_loss", "val_loss", "test_loss", "term", "soft_sigma"), every),
        singular=singular,
        figures=final_figures(test[-1], test[-1], train[-1], counts),
    )


def records(data: str, folder: Any = None) -> dict[str, TailRecord]:
    """Five methods on a set."""
    return {method: record(method, data) for method in LOWEST}


def sets(folder: Any = None) -> tuple[str, ...]:
    """Sets that are recorded."""
    return ("pbc", "ham10000", "tiny")


def row(
    data: str, name: str, worst: float, seeds: int = 3, overall: float = 0.8, val: float | None = None
) -> dict[str, Any]:
    """One row of the table: everything follows from the worst classes' mean recall."""
    sd = 0.01 if seeds > 1 else None
    found: dict[str, Any] = {
        "data": data,
        "method": method_of(name).label,
        "name": name,
        "seeds": list(range(seeds)),
    }
    for key in (*FIGURES, "wr", "sigma1", "bound", "val_overall", "val_mean_recall", "val_worst_classes"):
        found |= {key: worst, f"{key}_sd": sd}
    found["overall"] = found["val_overall"] = overall
    found |= {
        "network": "resnet",
        "classes": len(NAMES[data]),
        "worst_classes_train": 0.9,
        "worst_classes_train_sd": sd,
    }
    found["by_seed"] = {
        s: {"worst_classes": worst + 0.01 * (s - (seeds - 1) / 2), "overall": overall} for s in range(seeds)
    }
    if val is not None:
        found["val_worst_classes"] = val
    return found


def other_networks(folder: Any = None) -> tuple[dict[str, Any], ...]:
    """A pair of another network."""
    return tuple(
        row("pbc", name, worst, seeds=1) | {"network": "vit"}
        for name, worst in (("ce", 0.2), ("car-count", 0.3))
    )


def table(folder: Any = None) -> tuple[dict[str, Any], ...]:
    """Rows of three sets: CAR better on two, no better on skin lesions."""
    rows = []
    for data in sets():
        gain = -0.02 if data == "ham10000" else 0.15
        rows += [
            row(data, "ce", 0.4),
            row(data, "adjusted", 0.55, overall=0.78),
            row(data, "car-paper", 0.37 if gain < 0 else 0.42),
            row(data, "car-count", 0.4 + gain),
            row(data, "car-naive-max", 0.36 if gain < 0 else 0.41, seeds=1),
            row(data, "car-no-weights", 0.4 + gain / 2, seeds=3),
        ]
    rows += [
        row("pbc", f"car-count@{k}", worst, seeds=1)
        for k, worst in (("alpha=0.2", 0.45), ("alpha=2", 0.39), ("beta=0.9", 0.54))
    ]
    return tuple(rows)


def rows_with(*values: tuple[str, list[float]]) -> list[dict[str, Any]]:
    """Rows on blood cells with these recalls of the worst classes by seed."""
    found = []
    for name, worst in values:
        one = row("pbc", name, float(np.mean(worst)), seeds=len(worst))
        one["by_seed"] = {s: {"worst_classes": w, "overall": 0.8} for s, w in enumerate(worst)}
        one["worst_classes_sd"] = float(np.std(worst, ddof=1)) if len(worst) > 1 else None
        found.append(one)
    return found


def finished(work: Path, method: str, seed: int = 0, data: str = "pbc", **schedule: Any) -> None:
    """A made-up finished run."""
    run = record(method, data)
    facts = {
        "set": data,
        "method": method,
        "label": run.title,
        "seed": seed,
        "classes": list(run.classes),
        "counts": run.counts.tolist(),
    }
    facts |= {"figures": final_figures(run.test[-1], run.test[-1], run.train[-1], run.counts)}
    facts |= {"schedule": {"net": "resnet", "epochs": 40} | schedule}
    arrays = run.losses | {
        "test": run.test,
        "val": run.test[:, ::-1, ::-1],
        "train": run.train,
        "train_epochs": run.train_epochs,
        "singular": run.singular,
    }
    write_run(work, facts, arrays)
