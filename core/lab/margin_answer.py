"""What the tables of all losses and the bridge to coverage answer, in sentences computed from their rows, whichever way they fall.

What it is not: a measurement (`margin_measure`, `margin_bridge`), or a chart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.conformal.words import promised
from core.figures.frame import listed
from core.lab.margin_record import TITLES
from core.lab.margin_sets import CLASSES
from core.lab.margin_words import SETS, one_digit

METHODS = ("CRC", "plug-in", "COAT")


def table_sentences(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the table of all losses says: which loss has the lowest error where, and how the margin stands beside cross-entropy.

    Args:
        rows: Rows of `margin_record.table`.

    Returns:
        One sentence for each scope, and one on the margin; temperature scaling, which trains nothing, is named apart.
    """
    sets = [s for s in SETS if any(r["data"] == s for r in rows)]
    said = []
    for key, words in (("ece_fg", "on foreground pixels"), ("ece_all", "over all pixels")):
        best = []
        for name in sets:
            of_set = {r["loss"]: r[key] for r in rows if r["data"] == name and _there(r.get(key))}
            trained = {k: v for k, v in of_set.items() if k != "CE + T"}
            if not trained:
                continue
            least = min(trained, key=trained.__getitem__)
            after = of_set.get("CE + T")
            lower = (
                f", and temperature scaling still lower, {one_digit(after)}"
                if after is not None and after < trained[least]
                else ""
            )
            best.append(f"{TITLES[least]} on {SETS[name].lower()} ({one_digit(trained[least])}{lower})")
        if best:
            said.append(f"**Lowest ECE {words}:** {'; '.join(best)}.")
    beside = []
    for name in sets:
        two = {r["loss"]: r for r in rows if r["data"] == name and r["loss"] in ("CE", "margin")}
        if len(two) == 2:
            a, b = two["CE"], two["margin"]
            beside.append(
                f"{SETS[name].lower()}: ECE on the foreground {one_digit(a['ece_fg'])} → {one_digit(b['ece_fg'])}, over all pixels "
                f"{one_digit(a['ece_all'])} → {one_digit(b['ece_all'])}, Dice {one_digit(a['dice'])} → {one_digit(b['dice'])}"
            )
    if beside:
        said.append(f"**Cross-entropy → margin.** {'; '.join(s[0].upper() + s[1:] for s in beside)}.")
    return said


def _there(value: Any) -> bool:
    return value is not None and not math.isnan(value)


def choice_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """Which m was chosen on a set, and beside which others; "" where nothing was."""
    chosen = [r for r in rows if r["chosen"]]
    if not chosen:
        return ""
    tried = ", ".join(f"{r['margin']:g}" for r in sorted(rows, key=lambda r: r["margin"]))
    c = chosen[0]
    return (
        f"On {SETS[c['data']].lower()} m = {c['margin']:g} was chosen among {tried}: there its ECE is {one_digit(c['ece_fg'])} on the "
        f"foreground and "
        f"{one_digit(c['ece_all'])} over all pixels, its Dice {one_digit(c['dice'])}."
    )


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rank correlation, with mean ranks for ties; NaN for fewer than three pairs or a constant."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    keep = np.isfinite(a) & np.isfinite(b)
    if keep.sum() < 3:
        return math.nan
    ranks = [_ranks(v[keep]) for v in (a, b)]
    if any(np.ptp(r) == 0 for r in ranks):
        return math.nan
    return float(np.corrcoef(np.stack(ranks))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.array([(values < v).sum() + ((values == v).sum() - 1) / 2 for v in values], dtype=np.float64)


def of_bridge(
    rows: Sequence[Mapping[str, Any]], data: str | None = None, alpha: float | None = None
) -> list[Mapping[str, Any]]:
    """Rows of one set, of one level, or of both."""
    return [
        r
        for r in rows
        if (data is None or r["data"] == data) and (alpha is None or abs(r["alpha"] - alpha) < 1e-9)
    ]


def signed(points: float) -> str:
    """A change in points with its sign: `+0.4`, `−1.2`, `0.0`."""
    said = f"{abs(points):.1f}"
    return said if float(said) == 0 else f"{'+' if points > 0 else '−'}{said}"


def bridge_answer(rows: Sequence[Mapping[str, Any]], alpha: float) -> list[str]:
    """Does calibration help a conformal set? The answer in short, then one sentence a method, computed from the table.

    Args:
        rows: Rows of `margin_record.bridge` of all sets.
        alpha: The level.

    Returns:
        Sentences; empty when there are no rows.
    """
    here = of_bridge(rows, alpha=alpha)
    found = {m: _of_method(here, m) for m in METHODS}
    verdicts = {m: verdict for m, (verdict, _) in found.items() if verdict}
    if not verdicts:
        return []
    groups = {v: [m for m in verdicts if verdicts[m] == v] for v in dict.fromkeys(verdicts.values())}
    short = "; ".join(f"{verdict} for {_and(methods)}" for verdict, methods in groups.items())
    said = [f"**{short[0].upper()}{short[1:]}.**"]
    said += [words for _, words in found.values() if words]
    if same := _temperature_sentence(here):
        said.append(same)
    return said


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _of_method(rows: Sequence[Mapping[str, Any]], method: str) -> tuple[str, str]:
    """Verdict and sentence of one method; both "" where too few losses were measured."""
    mine = [r for r in rows if r["method"] == method]
    sets = list(dict.fromkeys(r["data"] for r in mine))
    ranks, wins, gains, prices = [], 0, [], []
    for name in sets:
        of_set = {r["loss"]: r for r in mine if r["data"] == name}
        rho = rank_correlation([r["ece_all"] for r in of_set.values()], [r["gap"] for r in of_set.values()])
        if not math.isnan(rho):
            ranks.append(rho)
        best = min(of_set.values(), key=lambda r: r["ece_all"])
        wins += best["gap"] <= min(r["gap"] for r in of_set.values()) + 1e-12
        if "CE" in of_set:
            gains.append(best["gap"] - of_set["CE"]["gap"])
            prices.append(best["area"] - of_set["CE"]["area"])
    if not ranks:
        return "", ""
    mean, together = float(np.mean(ranks)), sum(r > 0 for r in ranks)
    by_seed = [r["gap_sd"] for r in mine if _there(r.get("gap_sd"))]
    noise = float(np.mean(by_seed)) if by_seed else 0.0
    if mean > 0.5 and together == len(ranks):
        gained = bool(gains) and float(np.mean(gains)) < -noise
        verdict = "as a rule yes" if gained else "a bad calibration costs a little, a good one gains nothing"
    elif mean < -0.5 and together == 0:
        verdict = "rather the other way round"
    else:
        verdict = "not reliably"
    each = ", ".join(f"{r:+.1f}".replace("-", "−") for r in ranks)
    where = listed([SETS[s].lower() for s in sets])
    text = (
        f"*{method}*: over the losses, ECE (all pixels) and gap rank with Spearman's ρ = {each} ({where}; 1 is the same order, 0 no relation). The "
        f"loss with the "
        f"lowest ECE also has the smallest gap on {wins} of {len(sets)}."
    )
    if gains:
        text += (
            f" Against cross-entropy that loss changes the gap by {signed(100 * float(np.mean(gains)))} points and the set area by "
            f"{signed(100 * float(np.mean(prices)))} on average"
        )
        text += f"; the seed alone moves a gap by {100 * noise:.1f}." if by_seed else "."
    return verdict, text


def _temperature_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """What dividing by one temperature changes where there are two classes: next to nothing for CRC, something for the plug-in."""
    moved: dict[str, list[float]] = {"CRC": [], "plug-in": []}
    for r in rows:
        if r["loss"] == "CE + T" and r["method"] in moved and len(CLASSES[r["data"]]) == 2:
            ce = [q for q in rows if (q["data"], q["method"], q["loss"]) == (r["data"], r["method"], "CE")]
            moved[r["method"]] += [r["gap"] - q["gap"] for q in ce]
    if not all(moved.values()):
        return ""
    crc, plug = (signed(100 * float(np.mean(moved[m]))) for m in ("CRC", "plug-in"))
    return (
        f"*Temperature scaling* is the cleanest test: with two classes it changes no order of the scores, so a threshold that is "
        f"calibrated afterwards has "
        f"nothing to gain from it. It moves CRC's gap by {crc} points and the plug-in's, which reads the probabilities themselves, by {plug}."
    )


def bridge_promise(alpha: float) -> str:
    """What the rows promise, and on what assumption."""
    return (
        f"If the calibration images and the next one are drawn alike, then on average over both draws at least {promised(alpha)} of "
        f"its foreground is "
        "inside, under every loss: CRC, plug-in and COAT are calibrated by one shift on the same images. What a loss can change is "
        "the gap, how far "
        "single images lie from that, and the area that is marked. No theorem is about either."
    )
