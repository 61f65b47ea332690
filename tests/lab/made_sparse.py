"""Made-up records of sparse coding networks, a shelf of them with untrained networks, and a working folder with a tiny run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from core.data.corruptions import CORRUPTIONS, NOISES
from core.lab import sparse_queue
from core.lab.sparse_evaluate import Plan
from core.lab.sparse_record import Cell, SparseRecord, save_record, save_sparse_network
from core.lab.sparse_shelf import PLAN, folder_of
from core.lab.sparse_train import Images, Run, Schedule
from core.lab.sparse_unet import build_unet, save_unet
from core.settings.tacsc import MODELS, TacscSettings
from core.tacsc.layer import sparse_layers
from core.tacsc.nets import build

TINY = Schedule(epochs=2, batch=16, every=2, bfloat16=False)
SMALL = Plan(("gaussian_noise", "fog"), (1, 2, 3, 4, 5), (10, 20), 20, 10, 10, bfloat16=False)
STAGES = (8, 8, 8, 8, 8, 8)
EPOCHS, PER_EPOCH, EVERY = 6, 40, 10
CLEAN, HARM, BN, LAM = 0.9, 0.07, 0.6, 0.16
"""Clean accuracy; what a severity costs; shares of the loss that BN and λ bring back."""


def made_run(model: str = "tacsc", iterations: int = 2, width: int = 4) -> Run:
    return Run(model, TacscSettings(iterations=iterations, learn=model != "fixed"), width, 0)


def names_of(model: str) -> list[str]:
    return list(sparse_layers(build(model, 2)))


def history_of(model: str, iterations: int = 2, last: float = 0.12) -> dict[str, object]:
    layers = names_of(model)
    t = np.arange(0, EPOCHS * PER_EPOCH + 1, EVERY)
    rise = (
        0.1
        + 0.2 * np.minimum(t / 80, 1) * (t <= 80)
        + (0.2 + (last - 0.3) * np.minimum((t - 80) / 60, 1)) * (t > 80)
    )
    if model == "fixed":
        rise = np.full(len(t), 0.1)
    depth = 1 + 0.1 * np.arange(len(layers))
    epochs = np.arange(EPOCHS)
    lines = np.outer(epochs + 1, depth) / 30
    return {
        "layers": layers,
        "steps": t.tolist() if layers else [],
        "threshold": np.outer(rise, depth).tolist() if layers else [],
        "loss": (2 / (epochs + 1)).tolist(),
        "train_accuracy": (0.3 + 0.1 * epochs).tolist(),
        "sparsity": np.minimum(0.2 + lines, 0.95).tolist() if layers else [],
        "error": np.minimum(0.05 + lines / 3, 0.9).tolist() if layers else [],
        "size": (0.3 - lines / 10).tolist() if layers else [],
        "seconds": [1.0] * EPOCHS,
    }


def cells_of(
    model: str,
    iterations: int = 2,
    corruptions: tuple[str, ...] = CORRUPTIONS,
    bn: float = BN,
    lam: float = LAM,
) -> tuple[Cell, ...]:
    """Accuracy falls by HARM a severity; BN brings the share `bn` of it back, λ the share `lam` more; samples hardly matter."""
    history = history_of(model, iterations)
    trained = tuple(history["threshold"][-1]) if history["layers"] else ()
    cells = []
    for corruption, s in [("clean", 0)] + [(c, s) for c in corruptions for s in range(1, 6)]:
        lost = HARM * s
        base = CLEAN - lost
        cells.append(Cell(corruption, s, "none", 0, 1000, base, trained))
        for n in (100, 50, 500) if corruption == "clean" or corruption in NOISES else (100,):
            more = 0.01 * (n - 100) / 400
            cells.append(Cell(corruption, s, "bn", n, 1000, base + bn * lost + more, trained))
            if trained:
                up = 1.2 + 0.3 * s
                moved = tuple(v * up for v in trained)
                stopped = (history["layers"][0],) if s == 5 else ()
                cells.append(Cell(corruption, s, "lambda", n, 1000, base + lam * lost + more, moved, stopped))
                cells.append(
                    Cell(corruption, s, "both", n, 1000, base + (bn + lam) * lost + more, moved, stopped)
                )
    return tuple(cells)


def record(model: str = "tacsc", iterations: int = 2, width: int = 4, **changes: object) -> SparseRecord:
    """A record; `changes` go to `cells_of`."""
    run = made_run(model, iterations, width)
    adapt = {"what": "both", "steps": 20, "plan": {"pool": 500, "scored": 1000}}
    return SparseRecord(
        model, run.settings, width, 0, {"epochs": EPOCHS, "batch": 128, "learning_rate": 0.1}, 5000, history_of(model, iterations), adapt,
        cells_of(model, iterations, **changes), "made up", {"torch": "2.9"},  # type: ignore[arg-type]
    )  # fmt: skip


def network(model: str = "tacsc", iterations: int = 2, width: int = 4) -> torch.nn.Module:
    """An untrained network that is ready to run."""
    net = build(model, width, 10, made_run(model, iterations).settings)
    net.train()
    net(
        torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    )  # L of every layer, statistics of every norm
    return net.requires_grad_(False).eval()


def unet(sparse: bool = True) -> torch.nn.Module:
    net = build_unet(TacscSettings() if sparse else None, torch.Generator().manual_seed(0), STAGES)
    net.train()
    net(torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    return net.requires_grad_(False).eval()


def write_made(
    folder: Path, only: tuple[tuple[str, int], ...] = PLAN, networks: bool = True, width: int = 4
) -> Path:
    """A shelf of made-up records, laid out like `assets/`, with untrained networks and a U-Net. Returns the folder."""
    for model, iterations in only:
        assert model in MODELS
        run = made_run(model, iterations, width)
        save_record(folder_of(folder) / f"{run.key}.json", record(model, iterations, width))
        if networks:
            path = folder / "weights" / f"sparse-{run.key}.safetensors"
            save_sparse_network(path, network(model, iterations, width), model, run.settings, width)  # type: ignore[arg-type]
    if networks:
        path = folder / "weights" / "sparse-unet-phantom-tacsc.safetensors"
        save_unet(path, unet(), TacscSettings(), {}, STAGES)
    return folder


def pictures(n: int = 48, seed: int = 0, classes: int = 3) -> Images:
    """Tiny pictures whose class is a colour."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    images = rng.integers(0, 120, (n, 32, 32, 3))
    images[np.arange(n), :, :, labels % 3] += 120
    return Images(images.astype(np.uint8), labels.astype(np.int64))


def write_work(folder: Path, runs: tuple[Run, ...] = (made_run(),)) -> Path:
    """A working folder as `sparse_queue` leaves it, with runs that really were trained, a little. Returns the folder."""
    sparse_queue.walk(runs, TINY, pictures(), pictures(60, 2), folder, SMALL, command="a test")
    return folder


def photo(height: int = 60, width: int = 80, seed: int = 0) -> np.ndarray:
    """A grained picture of waves, `(height, width, 3)` uint8."""
    y, x = np.mgrid[:height, :width]
    waves = np.stack([np.sin(x / 5 + k) + np.cos(y / 7) for k in range(3)], -1)
    grain = np.random.default_rng(seed).normal(0, 8, (height, width, 3))
    return (128 + 50 * waves + grain).clip(0, 255).astype(np.uint8)
