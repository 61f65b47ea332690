"""What the sparse page reads from recorded runs, as arrays: λ and accuracy by severity; and the door to training and ablations.

Everything comes from a `SparseRecord` in a millisecond or two. Nothing is trained, drawn or put into words (`sparse_words`). What was not
measured is NaN in an array and absent from a list of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.data.corruptions import CORRUPTIONS
from core.lab.sparse_ablation import ablation, by_iterations, by_samples
from core.lab.sparse_names import ADAPT_TITLES, SAMPLES, TITLES, key_of, layer_words, title_of, trained_of
from core.lab.sparse_record import Cell, SparseRecord
from core.lab.sparse_story import Phase, Plane, Story, plane, story
from core.settings.tacsc import ADAPTATIONS


@dataclass(frozen=True, eq=False)
class Severity:
    """One network under one corruption, severities 0 (clean) to 5. L sparse layers.

    Attributes:
        key: The run.
        title: What the screen calls it.
        corruption: Name.
        names: L names of the layers in words; empty for the ResNet.
        trained: `(L,)` λ after training.
        threshold: `(6, L)` λ after adaptation at each severity, row 0 on clean images.
        stopped: Six tuples: names in words of the layers that a guard stopped.
        accuracy: `"none"`, `"bn"`, `"lambda"`, `"both"` -> `(6,)` accuracy in [0, 1]; the ResNet has the first two.
        beside: The same of the ResNet, `"none"` and `"bn"`; empty where it is not recorded.
        samples: Unlabelled images that adaptation saw.
        scored: `(6,)` images that were scored, none of them seen by adaptation; 0 where nothing was measured.
    """

    key: str
    title: str
    corruption: str
    names: tuple[str, ...]
    trained: np.ndarray
    threshold: np.ndarray
    stopped: tuple[tuple[str, ...], ...]
    accuracy: Mapping[str, np.ndarray]
    beside: Mapping[str, np.ndarray]
    samples: int
    scored: np.ndarray


def severity(
    record: SparseRecord, corruption: str, beside: SparseRecord | None = None, samples: int = SAMPLES
) -> Severity:
    """One network under one corruption.

    Args:
        record: The network's record.
        corruption: One of `core.data.corruptions.CORRUPTIONS`.
        beside: The ResNet's record, or None.
        samples: Images that adaptation saw.

    Raises:
        ValueError: The corruption is not known.
    """
    if corruption not in CORRUPTIONS:
        raise ValueError(
            f"The corruption {corruption!r} is not known; choose one of {', '.join(CORRUPTIONS)}."
        )
    cells = {(c.severity, c.adapt): c for c in record.cells if _counts(c, corruption, samples)}
    trained = trained_of(record)
    threshold = np.full((6, len(trained)), np.nan)
    stopped: list[tuple[str, ...]] = []
    names = tuple(map(layer_words, record.history.get("layers", ())))
    words = dict(zip(record.history.get("layers", ()), names, strict=True))
    for s in range(6):
        moved = cells.get((s, "lambda"))
        if moved is not None and len(moved.threshold) == len(trained):
            threshold[s] = moved.threshold
        stopped.append(tuple(words.get(name, name) for name in moved.stopped) if moved is not None else ())
    ways = ADAPTATIONS if len(trained) else ADAPTATIONS[:2]
    other = {} if beside is None else {c: _row(beside, corruption, c, samples) for c in ADAPTATIONS[:2]}
    return Severity(
        key=key_of(record),
        title=title_of(record),
        corruption=corruption,
        names=names,
        trained=trained,
        threshold=threshold,
        stopped=tuple(stopped),
        accuracy={way: _row(record, corruption, way, samples) for way in ways},
        beside=other,
        samples=samples,
        scored=np.array([cells[s, "none"].scored if (s, "none") in cells else 0 for s in range(6)]),
    )


def _counts(cell: Cell, corruption: str, samples: int) -> bool:
    """Whether a cell belongs to the six of a corruption: its own, and the clean one for severity 0."""
    return cell.corruption in (corruption, "clean") and (cell.adapt == "none" or cell.samples == samples)


def _row(record: SparseRecord, corruption: str, adapt: str, samples: int) -> np.ndarray:
    """`(6,)` accuracies, severity 0 from the clean images."""
    return np.array([record.accuracy(corruption if s else "clean", s, adapt, samples) for s in range(6)])


def measured(record: SparseRecord) -> tuple[str, ...]:
    """Corruptions that a record holds, in their order."""
    there = {c.corruption for c in record.cells}
    return tuple(c for c in CORRUPTIONS if c in there)


def wanted(record: SparseRecord, samples: int = SAMPLES) -> dict[str, np.ndarray]:
    """Corruption -> `(6, L)` adapted λ over trained λ, row 0 on clean images: the paper's figure 3 for every corruption at once."""
    return {
        c: v.threshold / v.trained for c in measured(record) for v in [severity(record, c, None, samples)]
    }


__all__ = [
    "ADAPT_TITLES",
    "SAMPLES",
    "TITLES",
    "Phase",
    "Plane",
    "Severity",
    "Story",
    "ablation",
    "by_iterations",
    "by_samples",
    "key_of",
    "layer_words",
    "measured",
    "plane",
    "severity",
    "story",
    "title_of",
    "wanted",
]
