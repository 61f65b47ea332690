"""One cell with its threshold predictors trained anew: does the table's figure come again?

D2 and the pool are scored by the network that ships, AT and COAT are fitted on D2 with another seed and the settings of the shipped ones
(`core.lab.make.VARIANTS`), and both are calibrated and tested on the re-splits of the table. The base network is never trained here, however many
minutes there are. Where the clock asks for it, first the members of the ensembles and then their epochs are cut, and the result says so.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.coverage_cells import DOMAIN, gap_at_area, row_of, study_name
from core.coat.features import PredictorInput
from core.coat.fit import fit
from core.coat.predictor import predict_knots
from core.conformal import Resampled, resample
from core.conformal.metrics import draw_halves
from core.lab.gathered import gathered
from core.lab.make import VARIANTS
from core.lab.study import Study, shipped_study
from core.settings import CoatSettings

SEED = 1
"""Added to the seed of the shipped predictors, 0."""

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where the data sets lie when they stand beside the checkout."""


def data_folder(domain: str, data: Path | None) -> Path:
    """The folder of a domain's data set: the given one, or a folder of that name in it.

    Raises:
        FileNotFoundError: None was given and none stands beside the checkout.
    """
    name = DOMAIN[domain]
    for folder in (data, None if data is None else data / name, SHARED / name if data is None else None):
        if folder is not None and folder.is_dir() and (folder.name == name or not (folder / name).is_dir()):
            return folder
    raise FileNotFoundError(
        f"Retraining needs the images of {name}: give their folder with --data DIR. None stands in ../shared/data/{name} beside the checkout."
        if data is None
        else f"There is no folder of {name} at the place that --data names."
    )


def within(
    settings: dict[str, CoatSettings], seconds_an_epoch: float, seconds: float
) -> tuple[dict[str, CoatSettings], str]:
    """Settings that end within some seconds, and what was cut, in words ("" for nothing).

    Args:
        settings: Method -> settings as shipped.
        seconds_an_epoch: Of one member of one method.
        seconds: What may be used.
    """

    def cost(these: dict[str, CoatSettings]) -> float:
        return sum(s.members * s.epochs for s in these.values()) * seconds_an_epoch

    if cost(settings) <= seconds:
        return settings, ""
    members = next((m for m in (4, 3) if _cost_with(settings, m, seconds_an_epoch) <= seconds), 2)
    fewer = {k: replace(s, members=min(s.members, members)) for k, s in settings.items()}
    words = f"{members} members instead of {max(s.members for s in settings.values())}"
    if cost(fewer) > seconds:
        share = max(seconds, 0.0) / cost(fewer)
        fewer = {k: replace(s, epochs=max(2, int(s.epochs * share))) for k, s in fewer.items()}
        words += f" and {max(s.epochs for s in fewer.values())} epochs instead of {max(s.epochs for s in settings.values())}"
    return fewer, words


def _cost_with(settings: dict[str, CoatSettings], members: int, seconds_an_epoch: float) -> float:
    return sum(min(s.members, members) * s.epochs for s in settings.values()) * seconds_an_epoch


def retrain(args: argparse.Namespace) -> dict[str, Any]:
    """Fit the cell's predictors anew and compare them with the table."""
    began = time.perf_counter()
    domain, model, _ = args.cell
    name = study_name(domain, model)
    study, data = shipped_study(name), data_folder(domain, args.data)
    print(f"{name}: scoring D2 and the pool with the network that ships.")
    inputs = gathered(name, data, args.work)
    settings = {m: replace(s, epochs=2, members=2) if args.quick else s for m, s in VARIANTS.items()}
    probe = time.perf_counter()
    fit(inputs.d2, inputs.quantiles, replace(settings["AT"], epochs=1, members=2), SEED)
    an_epoch = (time.perf_counter() - probe) / 2
    left = 60 * args.minutes - (time.perf_counter() - began)
    settings, cut = within(settings, an_epoch, 0.85 * left)
    if args.quick:
        cut = "2 members and 2 epochs: a trial of the way, not of the figure"
    print(f"Fitting AT and COAT on {len(inputs.d2)} images. Cut for the clock: {cut or 'nothing'}.")
    return compare(study, inputs.d2, inputs.quantiles, inputs.pool, settings, args) | {
        "cut": cut or "nothing"
    }


def compare(
    study: Study,
    d2: PredictorInput,
    quantiles: Any,
    pool: PredictorInput,
    settings: dict[str, CoatSettings],
    args: argparse.Namespace,
) -> dict[str, Any]:
    """Fit, calibrate and test on the table's re-splits; a row for each method, from the table and retrained."""
    alpha = args.cell[2]
    halves = draw_halves(len(study.curves), args.share, args.splits, args.seed)
    crc = resample(study.curves, study.tau_hat("CRC", alpha), alpha, halves)
    crc_area = float(crc.area.mean())

    def row(of: Study, method: str, found: Resampled, made: str) -> dict[str, Any]:
        at_area = gap_at_area(of.curves, of.tau_hat(method, alpha), alpha, crc_area)
        return {"made": made, **row_of(of, method, found, at_area)}

    rows, agrees = [row(study, "CRC", crc, "table")], {}
    for method, chosen in settings.items():
        members = fit(d2, quantiles, chosen, SEED).members
        anew = replace(study, knots=study.knots | {method: predict_knots(members, pool)})
        pair = []
        for of, made in ((study, "table"), (anew, "retrained")):
            found = resample(of.curves, of.tau_hat(method, alpha), alpha, halves)
            pair.append(row(of, method, found, made))
        rows += pair
        agrees[method] = abs(pair[1]["gap"] - pair[0]["gap"]) <= pair[0]["gap_sd"]
    by = {(r["method"], r["made"]): r for r in rows}
    return {
        "settings": {"cell": ",".join(map(str, args.cell)), "new_seed": SEED, "base_network": "as it ships"},
        "rows": rows,
        "gap_table": by["COAT", "table"]["gap"],
        "gap_retrained": by["COAT", "retrained"]["gap"],
        "gap_sd": by["COAT", "table"]["gap_sd"],
        "agrees_at": agrees["AT"],
        "agrees": agrees["COAT"],
    }
