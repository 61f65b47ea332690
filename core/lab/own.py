"""A person's own model: calibration of every method on their score maps, with AT and COAT trained on a part of them.

`prepare` is the expensive half (curves of all images), `train` the long one (from 100 images on), `study_own` the cheap one (every
alpha, every seed); `calibrate_own` is all three. The parts are disjoint: D2 trains the predictors, the rest is divided into calibration
and test by the seed. The results are an ordinary `Study` and `Split`, so that tables and charts are those of the shipped studies.
Nothing is read from disk here (`core.images.maps`), and files to take away are made in `own_file.py` and `own_report.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from core.conformal import Calibration, Evaluation, calibrate, evaluate
from core.conformal.confidence import calibrate_with_confidence
from core.conformal.exchangeability import SPLIT_SENTENCE, Comparison, compare
from core.data.splits import redraw
from core.images.maps import Maps
from core.lab.own_groups import Grouped, columns_to_choose, group_study, part_column
from core.lab.own_prepare import OnStep, Prepared, prepare
from core.lab.own_train import ENOUGH_TO_TRAIN, Trained, train, will_train
from core.lab.study import Split, Study
from core.settings import OwnSettings, check

__all__ = ["OwnStudy", "Prepared", "Trained", "calibrate_own", "prepare", "study_own", "train", "will_train"]


@dataclass(frozen=True, eq=False)
class OwnStudy:
    """What a person gets.

    Attributes:
        prepared: All images.
        trained: AT and COAT, or None.
        settings: What was asked.
        pool: Indices of the images that calibrate and test, into all images.
        split: The pool with its draw, calibrations and evaluations (indices into the pool); the rows *oracle* and *whole image* included.
        grouped: CRC by group, or None where no column was chosen.
        comparison: Calibration against test images where a column of theirs says which is which, else None.
        sentences: What is promised, what it assumes, and how the images were divided.
    """

    prepared: Prepared
    trained: Trained | None
    settings: OwnSettings
    pool: np.ndarray
    split: Split
    grouped: Grouped | None
    comparison: Comparison | None
    sentences: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that carry a promise, in order."""
        return tuple(self.split.calibrations)


def calibrations_on(study: Study, settings: OwnSettings, subset: np.ndarray | None) -> dict[str, Calibration]:
    """Every method calibrated on some images of the pool (None: on all), by the promise that is asked for."""
    made: dict[str, Calibration] = {}
    for m in ("CRC", *study.knots):
        tau_hat = study.tau_hat(m, settings.alpha)
        if settings.promise == "with confidence":
            made[m] = calibrate_with_confidence(
                study.curves, tau_hat, settings.alpha, settings.delta, subset, m
            )
        else:
            made[m] = calibrate(study.curves, tau_hat, settings.alpha, subset, m)
    return made


def study_own(
    prepared: Prepared, trained: Trained | None, settings: OwnSettings, column: str | None = None
) -> OwnStudy:
    """Calibrate and evaluate every method at one alpha and one draw.

    Args:
        prepared: All images.
        trained: AT and COAT, or None.
        settings: What is asked.
        column: A column of groups, or "predicted area"; None leaves groups out.

    Raises:
        ValueError: Settings out of range, an unknown column, or no test image shows a lesion.
    """
    check(settings)
    n = len(prepared.maps)
    pool = np.setdiff1d(np.arange(n), trained.training) if trained is not None else np.arange(n)
    parts = part_column(prepared.maps)
    if parts is None:
        calibrating, testing = redraw(len(pool), settings.calibration_share, settings.seed)
    else:
        calibrating, testing = (np.flatnonzero(parts[pool] == p) for p in ("calibration", "test"))
    curves = prepared.pool_of(pool)
    at = torch.as_tensor(pool)
    knots = {"plug-in": prepared.plug_in[at]}
    knots |= {m: k[at] for m, k in (trained.knots if trained is not None else {}).items()}
    study = Study(name="own", curves=curves, knots=knots, facts={"images": n, "pool": len(pool)})
    made = calibrations_on(study, settings, calibrating)
    shifts = {m: c.shift for m, c in made.items()} | {"oracle": 0.0, "whole image": float("inf")}
    rows: dict[str, Evaluation] = {
        m: evaluate(curves, study.tau_hat(m, settings.alpha), t, settings.alpha, testing)
        for m, t in shifts.items()
    }
    split = Split(
        study=study, alpha=settings.alpha, seed=settings.seed, calibrating=calibrating, testing=testing,
        calibrations=made, evaluations=rows,
        delta=settings.delta if settings.promise == "with confidence" else None,
    )  # fmt: skip
    grouped = None
    if column is not None:
        if column not in columns_to_choose(prepared.maps):
            raise ValueError(
                f"There is no column {column!r}; choose one of {', '.join(columns_to_choose(prepared.maps))}."
            )
        cut_on = trained.training if trained is not None else pool
        grouped = group_study(prepared.maps, prepared.statistics, pool, cut_on, split, column)
    comparison = None
    if parts is not None and len(calibrating) and len(testing):
        comparison = compare(prepared.statistics[pool[calibrating]], prepared.statistics[pool[testing]])
    said = _sentences(prepared, trained, settings, split, comparison)
    return OwnStudy(prepared, trained, settings, pool, split, grouped, comparison, said)


def _sentences(
    prepared: Prepared,
    trained: Trained | None,
    settings: OwnSettings,
    split: Split,
    comparison: Comparison | None,
) -> tuple[str, ...]:
    said = [split.calibrations["CRC"].guarantee]
    if trained is not None:
        seen = "maps and images" if trained.pictures else "maps alone"
        said.append(
            f"AT and COAT were trained on {len(trained.training)} of your {len(prepared.maps)} images ({seen}). Those calibrate and test nothing, so "
            "the same promise holds for them."
        )
    elif settings.train != "never" and prepared.with_lesion < ENOUGH_TO_TRAIN:
        said.append(
            f"AT and COAT, which predict a threshold for each image, are trained from {ENOUGH_TO_TRAIN} images with a lesion on; here are "
            f"{prepared.with_lesion}."
        )
    said.append(SPLIT_SENTENCE if comparison is None else comparison.sentence)
    return tuple(said)


def calibrate_own(
    maps: Maps, settings: OwnSettings | None = None, column: str | None = None, on_step: OnStep | None = None
) -> OwnStudy:
    """Everything at once: prepare, train where there are enough images, calibrate and evaluate.

    Args:
        maps: Score maps with masks, no question open.
        settings: What is asked; defaults when None.
        column: A column of groups, "predicted area", or None.
        on_step: `(done, total, facts)` of the stage that runs.

    Raises:
        ValueError: As in `prepare`, `train` and `study_own`.
    """
    chosen = OwnSettings() if settings is None else settings
    check(chosen)
    prepared = prepare(maps, on_step)
    trained = train(prepared, chosen, on_step) if will_train(prepared, chosen) else None
    return study_own(prepared, trained, chosen, column)
