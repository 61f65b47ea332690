"""The state of a training run on disk: weights, the optimiser's moments and plain facts, in one safetensors file, written atomically.

It is for going on after a stop; what ships is written by `weights.py`. Learning rates are not kept: a schedule sets them at every step.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn


def save_state(
    path: Path, model: nn.Module, optimiser: torch.optim.Optimizer, mark: str, facts: dict[str, Any]
) -> None:
    """Write where a run stands.

    Args:
        path: Target.
        model: Its weights and buffers.
        optimiser: Its moments (tensors and numbers of each parameter).
        mark: What makes two runs the same; `load_state` refuses another's state.
        facts: JSON-able, for instance the history so far.
    """
    tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
    numbers: dict[str, float] = {}
    for index, entry in optimiser.state_dict()["state"].items():
        for key, value in entry.items():
            name = f"{index}.{key}"
            if isinstance(value, torch.Tensor):
                tensors[f"optimiser.{name}"] = value
            elif value is not None:
                numbers[name] = float(value)
    # clones: safetensors writes no two names of one memory
    whole = {k: v.detach().clone().contiguous() for k, v in tensors.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    save_file(
        whole,
        str(part),
        metadata={"mark": mark, "facts": json.dumps(facts), "numbers": json.dumps(numbers)},
    )
    os.replace(part, path)


def load_state(
    path: Path, model: nn.Module, optimiser: torch.optim.Optimizer, mark: str
) -> dict[str, Any] | None:
    """Put a run back where it stood.

    Args:
        path: What `save_state` wrote.
        model: Gets the weights.
        optimiser: Gets the moments.
        mark: Of this run.

    Returns:
        The facts; None, with nothing changed, where there is no file or it belongs to another run.
    """
    if not path.exists():
        return None
    with safe_open(str(path), "pt") as file:
        meta = file.metadata()
        if meta.get("mark") != mark:
            return None
        tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118  safe_open is no dictionary
    model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
    moments: dict[int, dict[str, Any]] = {}
    found: dict[str, Any] = {k[10:]: v for k, v in tensors.items() if k.startswith("optimiser.")}
    for name, value in {**found, **json.loads(meta["numbers"])}.items():
        index, key = name.split(".", 1)
        moments.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
    facts: dict[str, Any] = json.loads(meta["facts"])
    return facts
