"""Fitted ensembles on disk: one weights file holds the members of AT and of COAT, with the settings that
made them.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from core.coat.fit import Fitted
from core.coat.predictor import ThresholdPredictor
from core.nets.weights import load_tensors, save_tensors


def save_members(path: Path, fitted: dict[str, Fitted], facts: dict[str, object]) -> None:
    """Write the ensembles of all methods into one weights file."""
    tensors = {
        f"{method}.{k}.{key}": value
        for method, f in fitted.items()
        for k, member in enumerate(f.members)
        for key, value in member.state_dict().items()
    }
    any_fit = next(iter(fitted.values()))
    settings = {method: asdict(f.settings) for method, f in fitted.items()}
    head: dict[str, object] = {
        "members": len(any_fit.members),
        "picture": any_fit.members[0].picture,
        "settings": settings,
    }
    save_tensors(path, tensors, head | facts)


def load_members(path: Path) -> dict[str, tuple[ThresholdPredictor, ...]]:
    """Read the ensembles written by `save_members`.

    Returns:
        Method -> members, frozen and in eval mode.

    Raises:
        FileNotFoundError, ValueError: As in `core.nets.weights.load_tensors`.
    """
    tensors, facts = load_tensors(path)
    found = {}
    for method in dict(facts["settings"]):  # type: ignore[call-overload]
        members = []
        for k in range(int(facts["members"])):  # type: ignore[call-overload]
            member = ThresholdPredictor(bool(facts["picture"]))
            head = f"{method}.{k}."
            member.load_state_dict(
                {key[len(head) :]: v for key, v in tensors.items() if key.startswith(head)}
            )
            members.append(member.requires_grad_(False).eval())
        found[method] = tuple(members)
    return found
