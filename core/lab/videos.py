"""The fire study's other question: what becomes of the promise when the next frame comes from another video?

The pool is re-split by frame, so the promise is about further frames of its videos. Here the same thresholds are calibrated on some videos and tested
on the others, over every way to halve the videos. Nothing of this is part of the promise: a promise across videos takes the video as one image, and
needs 1/alpha - 1 calibration videos at least.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from core.conformal import coverage_over_draws, images_needed
from core.conformal.words import percent, promised
from core.lab.study import METHODS, Study, spread, table_of


@dataclass(frozen=True)
class AcrossVideos:
    """Coverage when whole videos calibrate and other whole videos are tested.

    Attributes:
        alpha: Share that may be missed.
        videos: Names of the pool's videos.
        halves: For each draw, the names of the videos that calibrate.
        by_video: Method -> `(S,)` mean coverage of the test frames of each draw by video.
        by_frame: Method -> `(D,)` the same over redrawn halves by frame, which is what the promise is about.
    """

    alpha: float
    videos: tuple[str, ...]
    halves: tuple[tuple[str, ...], ...]
    by_video: dict[str, np.ndarray]
    by_frame: dict[str, np.ndarray]


def across_videos(
    study: Study, alpha: float, video: tuple[str, ...], seed: int = 0, draws: int = 1000
) -> AcrossVideos:
    """Calibrate on each half of the videos and test on the other.

    Args:
        study: The study.
        alpha: Share that may be missed, in (0, 1).
        video: The video of each pool image, N names.
        seed: Of the draws by frame.
        draws: Redrawn halves by frame.

    Raises:
        ValueError: Another number of names than images, or fewer than two videos.
    """
    names = tuple(sorted(set(video)))
    if len(video) != len(study.curves) or len(names) < 2:
        raise ValueError(
            f"There are {len(study.curves)} frames, {len(video)} of them with a video, and {len(names)} videos; two are needed."
        )
    of = np.array(video)
    halves = tuple(itertools.combinations(names, len(names) // 2))
    calibrating = np.array([np.isin(of, half) for half in halves])
    by_video = {
        m: coverage_over_draws(
            study.curves, study.tau_hat(m, alpha), alpha, calibrating, table_of(study, m, alpha)
        )
        for m in METHODS
    }
    return AcrossVideos(alpha, names, halves, by_video, spread(study, alpha, seed, draws, METHODS))


def across_sentence(found: AcrossVideos, method: str = "COAT") -> str:
    """What happens across videos, and why no promise can be made there, in words."""
    by, frame = found.by_video[method], found.by_frame[method]
    low, high = np.quantile(frame, [0.05, 0.95])
    calibrating, need = len(found.halves[0]), images_needed(found.alpha)
    enough = (
        f"it takes the video as the one that is drawn, and so at least {need} calibration videos for {promised(found.alpha)}; here are {calibrating}"
        if calibrating < need
        else f"it takes the video as the one that is drawn, and {calibrating} calibration videos carry little"
    )
    mean, mean_by = percent(float(frame.mean())), percent(float(by.mean()))
    middle = f"{percent(float(low))} to {percent(float(high))}"
    reach = f"{percent(float(by.min()))} to {percent(float(by.max()))}"
    return (
        f"Split by frame, {method} covers {mean} on average and {middle} in the middle 90\u00a0% of draws. Calibrated on {calibrating} of the "
        f"{len(found.videos)} videos and tested on the others, it covers {mean_by} on average and {reach} over all {len(by)} draws. A promise across "
        f"videos needs more videos than there are: {enough}."
    )


def across_rows(found: AcrossVideos) -> list[dict[str, object]]:
    """One row a method: mean, least and most, by frame and by video, and the share of draws below the promise."""
    goal = 1 - found.alpha - 1e-12
    return [
        {
            "method": m,
            "by_frame": float(found.by_frame[m].mean()),
            "by_video": float(v.mean()),
            "lowest": float(v.min()),
            "highest": float(v.max()),
            "below": float((v < goal).mean()),
        }
        for m, v in found.by_video.items()
    ]
