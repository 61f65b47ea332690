"""The command line of everything about shift: the study on CIFAR-10, the monitors of the coverage page, and the damaged phantoms.

`python -m core.lab.shift_study [all|cifar|monitors|phantoms] --data DIR --work DIR`. What is finished is written at once; damaged phantoms that are
finished in the working folder are not made again.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from core.data.folders import DataAbsent
from core.lab.shift_cards import damaged_card, monitor_card, study_card
from core.lab.shift_damage import COUNT, make_damaged
from core.lab.shift_ears import View
from core.lab.shift_fit import listener_of, make_monitor
from core.lab.shift_monitor import save_monitor
from core.lab.shift_record import save_shift
from core.lab.shift_study import ShiftPlan, study
from core.lab.sources import DOMAINS
from core.nets.weights import ASSETS

NETWORK = "tacsc_all-k2-w16-s0"
"""Run whose network listens on CIFAR-10."""

STEPS = ("cifar", "monitors", "phantoms")
LOG = logging.getLogger("plumbline")


def report(done: int, total: int, facts: Mapping[str, Any]) -> None:
    """One line a step of work."""
    words = (f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in facts.items())
    print(f"{done}/{total}", *words, flush=True)


def parser() -> argparse.ArgumentParser:
    """The command line as a parser."""
    root = argparse.ArgumentParser(
        "python -m core.lab.shift_study", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    root.add_argument("step", nargs="?", choices=("all", *STEPS), default="all")
    root.add_argument(
        "--data", type=Path, help="folder that holds cifar10.tar.xz and the folders of the real sets"
    )
    root.add_argument(
        "--work", type=Path, default=Path(".work/sparse"), help="folder that keeps what was read and finished"
    )
    root.add_argument("--out", type=Path, default=ASSETS, help="folder laid out like assets/")
    root.add_argument(
        "--network", default=NETWORK, help="key of the run that listens on CIFAR-10, or a file of weights"
    )
    root.add_argument(
        "--images", type=int, default=0, help="clean and damaged CIFAR-10 images each; 0 takes the plan's"
    )
    root.add_argument(
        "--domains", nargs="+", choices=DOMAINS, default=list(DOMAINS), help="monitors that are made"
    )
    root.add_argument(
        "--unets", type=Path, help="folder of the U-Nets that listen; --out's weights when absent"
    )
    root.add_argument(
        "--side", type=int, default=View().side, help="long side to which monitors scale an image"
    )
    root.add_argument("--measured", type=int, default=120, help="images on which a monitor is measured")
    root.add_argument("--count", type=int, default=COUNT, help="damaged phantoms")
    root.add_argument("--nice", type=int, default=0, help="be so much politer to other processes")
    return root  # fmt: skip


def _cifar(given: argparse.Namespace) -> None:
    from core.lab.sparse_queue import read_cifar
    from core.lab.sparse_record import load_sparse_network
    from core.lab.sparse_shelf import network

    path = Path(given.network)
    net = load_sparse_network(path) if path.suffix == ".safetensors" else network(given.network, given.out)
    _, test = read_cifar(given.data, given.work / "cache")
    plan = ShiftPlan(clean=given.images, damaged=given.images) if given.images else ShiftPlan()
    record = study(net, test.images, plan, path.stem.removeprefix("sparse-"), report)
    print("Written:", save_shift(record, given.out).name, study_card(record, given.out).name)


def _unet(name: str, folder: Path) -> nn.Module:
    from core.lab.sparse_unet import read_unet

    path = folder / f"{name}.safetensors"
    if not path.exists():
        raise FileNotFoundError(
            f"The network {path.name} is missing. Make it with: python -m core.lab.sparse_medical --help"
        )
    return read_unet(path)[0]  # fmt: skip


def _monitors(given: argparse.Namespace) -> None:
    for domain in given.domains:
        try:
            net = _unet(listener_of(domain), given.unets or given.out / "weights")
            made = make_monitor(domain, net, given.data, View(side=given.side), given.measured, report)
        except FileNotFoundError as problem:
            LOG.warning("No monitor for %s: %s", domain, problem)
            continue
        print("Written:", save_monitor(made, given.out).name, monitor_card(made, given.out).name)


def _phantoms(given: argparse.Namespace) -> None:
    made = make_damaged(given.work, given.out, count=given.count, on_step=report)
    shelf = given.out if (given.out / "scores" / "phantom.npz").exists() else ASSETS
    print("Written:", *(p.name for p in made), damaged_card(given.out, shelf).name)


def command(arguments: list[str] | None = None) -> int:
    """Run the command line; 0 when all is well, 2 with one sentence when something can be mended."""
    given = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if given.nice and hasattr(os, "nice"):
        os.nice(given.nice)
    work = {"cifar": _cifar, "monitors": _monitors, "phantoms": _phantoms}
    try:
        if given.step in ("all", "cifar") and given.data is None:
            raise ValueError("Give the folder that holds cifar10.tar.xz with --data.")
        for step in STEPS if given.step == "all" else (given.step,):
            work[step](given)
    except (ValueError, FileNotFoundError, DataAbsent) as error:
        print(error, file=sys.stderr)
        return 2
    return 0
