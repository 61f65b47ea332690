"""What a run of a sparse coding network leaves: the network in safetensors, and its figures as one JSON file.

The JSON holds settings, schedule, the history of training (λ of every layer on the way, sparsity and error by epoch) and the evaluation: accuracy by
corruption, severity and adaptation, and λ before and after. It is what ships in `assets/results`; the page and the benchmarks
read it here.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from core.nets.weights import load_tensors, save_tensors
from core.settings.tacsc import TacscSettings
from core.tacsc.nets import ResNet18, build


@dataclass(frozen=True)
class Cell:
    """Accuracy of one network under one corruption.

    Attributes:
        corruption: Name; `"clean"` for none.
        severity: 1 to 5; 0 for clean.
        adapt: `"none"`, `"bn"`, `"lambda"` or `"both"`.
        samples: Images that adaptation saw, none of which is scored; 0 for none.
        scored: Images that were scored.
        accuracy: Share of right answers in [0, 1].
        threshold: λ of every sparse layer behind this accuracy.
        stopped: Layers that a guard stopped.
    """

    corruption: str
    severity: int
    adapt: str
    samples: int
    scored: int
    accuracy: float
    threshold: tuple[float, ...] = ()
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True)
class SparseRecord:
    """One run.

    Attributes:
        model: One of `core.settings.tacsc.MODELS`.
        settings: Of the sparse layers.
        width: Channels of the first stage.
        seed: Of training.
        schedule: As plain values.
        images: Training images.
        history: As `sparse_train.fit` returns it.
        adapt_settings: As plain values; empty before the evaluation.
        cells: The evaluation; empty before it.
        command: What made it.
        versions: Of Python and the libraries that matter.
    """

    model: str
    settings: TacscSettings
    width: int
    seed: int
    schedule: dict[str, Any]
    images: int
    history: dict[str, Any]
    adapt_settings: dict[str, Any]
    cells: tuple[Cell, ...]
    command: str
    versions: dict[str, str]

    def accuracy(self, corruption: str, severity: int, adapt: str = "none", samples: int = 100) -> float:
        """Accuracy of one cell, NaN where it was not measured. `samples` is ignored for `"none"`."""
        for c in self.cells:
            if (c.corruption, c.severity, c.adapt) == (corruption, severity, adapt) and (
                adapt == "none" or c.samples == samples
            ):
                return c.accuracy
        return float("nan")

    def mean_accuracy(self, corruption: str, adapt: str = "none", samples: int = 100) -> float:
        """Accuracy averaged over the five severities, NaN where one is missing."""
        return sum(self.accuracy(corruption, s, adapt, samples) for s in range(1, 6)) / 5


def save_record(path: Path, record: SparseRecord) -> None:
    """Write a record, atomically, with five digits a number."""

    def short(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.5g}")
        if isinstance(value, dict):
            return {k: short(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [short(v) for v in value]
        return value

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(short(asdict(record)), ensure_ascii=False, separators=(",", ":")))
    part.replace(path)


def _cell(raw: dict[str, Any]) -> Cell:
    raw["threshold"], raw["stopped"] = tuple(raw["threshold"]), tuple(raw["stopped"])
    return Cell(**raw)


def load_record(path: Path) -> SparseRecord:
    """Read a record.

    Raises:
        FileNotFoundError: It is not there; says how it is made.
        ValueError: The file is no record.
    """
    if not path.exists():
        raise FileNotFoundError(
            f"The record {path.name} is missing. Make it with: python -m core.lab.sparse_train --help"
        )
    try:
        raw = json.loads(path.read_text())
        raw["settings"] = TacscSettings(**raw["settings"])
        raw["cells"] = tuple(_cell(cell) for cell in raw["cells"])
        return SparseRecord(**raw)
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise ValueError(f"{path.name} is no record of a sparse coding network ({error}).") from error


def save_sparse_network(path: Path, net: ResNet18, model: str, settings: TacscSettings, width: int) -> None:
    """Write a network with what rebuilds it. Kernels become float16."""
    facts: dict[str, object] = {
        "model": model,
        "settings": asdict(settings),
        "width": width,
        "classes": net.fc.out_features,
    }
    save_tensors(path, {k: v for k, v in net.state_dict().items() if v.numel()}, facts)


def load_sparse_network(path: Path) -> ResNet18:
    """Rebuild a network, frozen and in eval mode.

    Raises:
        FileNotFoundError, ValueError: As in `core.nets.weights.load_tensors`.
    """
    tensors, facts = load_tensors(path)
    net = build(
        str(facts["model"]),
        int(facts["width"]),  # type: ignore[call-overload]
        int(facts["classes"]),  # type: ignore[call-overload]
        TacscSettings(**facts["settings"]),  # type: ignore[arg-type]
    )
    net.load_state_dict({k: torch.as_tensor(v) for k, v in tensors.items()})
    return net.requires_grad_(False).eval()
