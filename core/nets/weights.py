"""Weights on disk: safetensors in float16 with the facts that rebuild the network, and the card beside
them.

Matrices and kernels are stored in float16; vectors and scalars (biases, normalisation statistics) stay
float32, so that small running variances survive. Files are written atomically. A card is a Markdown file of
the same stem: data, licence, split, figures, command.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from core.nets.build import Spec, best_device, build

ASSETS = Path(__file__).resolve().parents[2] / "assets"
"""Where everything that ships with the project lies."""


def save_tensors(path: str | Path, tensors: dict[str, torch.Tensor], facts: dict[str, object]) -> None:
    """Write tensors and facts.

    Args:
        path: Target, `.safetensors`.
        tensors: Name -> tensor; floating ones of two or more dimensions are stored as float16.
        facts: JSON-able values, stored in the file's header.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    small = {
        k: (
            v.detach().cpu().half() if v.is_floating_point() and v.ndim >= 2 else v.detach().cpu()
        ).contiguous()
        for k, v in tensors.items()
    }
    part = path.with_suffix(".part")
    save_file(small, str(part), metadata={"facts": json.dumps(facts)})
    os.replace(part, path)


def load_tensors(path: str | Path) -> tuple[dict[str, torch.Tensor], dict[str, object]]:
    """Read tensors (float16 becomes float32) and facts written by `save_tensors`.

    Raises:
        FileNotFoundError: The file is not there; the message names it and the command that makes it.
        ValueError: The file is damaged or carries no facts.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"The weights {path.name} are missing. Make them with: python -m core study --help"
        )
    try:
        with safe_open(str(path), "pt") as f:
            raw = (f.metadata() or {}).get("facts")
            tensors = {k: f.get_tensor(k) for k in f.keys()}  # noqa: SIM118  safe_open is no dictionary
    except SafetensorError as error:
        raise ValueError(f"{path.name} is no readable safetensors file ({error}).") from error
    if raw is None:
        raise ValueError(f"{path.name} holds tensors but not the facts that say what network they belong to.")
    return {k: v.float() if v.dtype == torch.float16 else v for k, v in tensors.items()}, json.loads(raw)


def save_network(path: str | Path, model: nn.Module, spec: Spec, facts: dict[str, object]) -> None:
    """Write a base network with its `Spec`."""
    save_tensors(path, model.state_dict(), {"spec": spec.to_dict()} | facts)


def load_network(path: str | Path) -> tuple[nn.Module, Spec, dict[str, object]]:
    """Rebuild a base network, frozen and in eval mode, on the best device.

    Returns:
        The network, its `Spec`, and the other facts of the file.

    Raises:
        FileNotFoundError, ValueError: As in `load_tensors`.
    """
    tensors, facts = load_tensors(path)
    raw: dict[str, Any] = dict(facts["spec"])  # type: ignore[call-overload]
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    spec = Spec(**values)
    model = build(spec)
    model.load_state_dict(tensors)
    model.requires_grad_(False)
    model.eval()
    return model.to(best_device()), spec, facts


@lru_cache(maxsize=8)
def shipped_network(name: str) -> tuple[nn.Module, Spec, dict[str, object]]:
    """The base network that ships under a study's name, loaded once a process."""
    return load_network(ASSETS / "weights" / f"{name}.safetensors")
