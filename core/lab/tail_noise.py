"""How much of a difference between two long-tail methods is chance: what another seed moves, what the test images alone leave open.

Rows are those of `core.lab.tail_shelf.table`. Nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import t

from core.figures.frame import listed
from core.lab.tail_answer import chosen_car, row_of
from core.lab.tail_names import SETS


@dataclass(frozen=True)
class Difference:
    """Two methods on one set, with minus without, in shares of 1.

    Attributes:
        worst: Difference of the worst classes' mean recall, over the seeds that both have.
        overall: The same of overall accuracy.
        seeds: How many seeds both have.
        noise: Standard error of `worst` from the seed alone, from `seed_noise`: three pairs by themselves would guess it badly. None where
            no method on this set has several seeds.
        freedom: Degrees of freedom of `noise`.
        sampling: Standard error of `worst` from the test images alone, taken as independent under the two methods; None where it is not recorded.
            The seeds share these images, so more seeds do not lessen it.
        before: The worst classes' mean recall without, over these seeds.
        after: The same with.
    """

    worst: float
    overall: float
    seeds: int
    noise: float | None
    freedom: int = 0
    sampling: float | None = None
    before: float = math.nan
    after: float = math.nan

    @property
    def reach(self) -> float | None:
        """How far another seed would often move it: 95 % of Student's t."""
        return None if self.noise is None else clear_from(self.freedom) * self.noise

    @property
    def clear(self) -> bool:
        """Whether it is more than chance."""
        return self.clear_among(1)

    def clear_among(self, asked: int) -> bool:
        """Whether it is more than chance would make the largest of so many differences (Bonferroni)."""
        return self.noise is not None and abs(self.worst) > clear_from(self.freedom, asked) * self.noise


def clear_from(freedom: int, asked: int = 1) -> float:
    """From how many standard errors on a difference is more than chance: two-sided 95 % of Student's t, for `asked` questions at once.

    Infinite without a degree of freedom.
    """
    return float(t.ppf(1 - 0.025 / asked, freedom)) if freedom > 0 else math.inf


def seed_noise(
    rows: Sequence[Mapping[str, Any]], data: str, with_car: bool | None = None
) -> tuple[float, int] | None:
    """Deviation over seeds of the worst classes' mean recall on a set, and its degrees of freedom.

    Args:
        rows: The table.
        data: The set.
        with_car: Only methods with CAR, or only those without: its seeds lie nearer to one another than cross-entropy's. None takes all.

    Returns:
        Root of the mean square over the methods with several seeds, weighted by their degrees of freedom; None where there is no such method.
    """
    found = [
        (r["worst_classes_sd"] ** 2, len(r["seeds"]) - 1)
        for r in rows
        if r["data"] == data
        and (with_car is None or r["name"].startswith("car-") == with_car)
        and (sd := r.get("worst_classes_sd")) is not None
        and not math.isnan(sd)
    ]
    freedom = sum(n for _, n in found)
    return (math.sqrt(sum(v * n for v, n in found) / freedom), freedom) if freedom else None


def noise_of(
    rows: Sequence[Mapping[str, Any]], data: str, names: Sequence[str], seeds: int
) -> tuple[float | None, int]:
    """Standard error of the difference of two methods over so many seeds, and its degrees of freedom.

    Each method has the noise of its kind (with CAR or without), or that of all methods where its kind has no second seed.
    """
    kinds = {name.startswith("car-") for name in names}
    each = {kind: seed_noise(rows, data, kind) or seed_noise(rows, data) for kind in kinds}
    parts = [each[name.startswith("car-")] for name in names]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None, 0
    freedom = sum(p[1] for p in each.values() if p is not None)
    return math.sqrt(sum(sd**2 for sd, _ in known) / seeds), freedom


def difference(rows: Sequence[Mapping[str, Any]], data: str, with_it: str, without: str) -> Difference | None:
    """Compare two methods on a set; None where no seed is shared."""
    a, b = row_of(rows, data, with_it), row_of(rows, data, without)
    if a is None or b is None:
        return None
    shared = sorted(set(a["by_seed"]) & set(b["by_seed"]))
    if not shared:
        return None
    worst, overall = (
        [a["by_seed"][s][key] - b["by_seed"][s][key] for s in shared] for key in ("worst_classes", "overall")
    )
    n = len(shared)
    noise, freedom = noise_of(rows, data, (with_it, without), n)
    errors = [[r["by_seed"][s].get("error", math.nan) for s in shared] for r in (a, b)]
    sampling = math.hypot(*(sum(e) / n for e in errors))
    before, after = (sum(r["by_seed"][s]["worst_classes"] for s in shared) / n for r in (b, a))
    known = None if math.isnan(sampling) else sampling
    return Difference(sum(worst) / n, sum(overall) / n, n, noise, freedom, known, before, after)


def points(share: float) -> str:
    """A share in points with its sign: 0.097 -> `+9.7`."""
    return f"{100 * share:+.1f}".replace("-", "−")


def seeds_and_reach(d: Difference) -> str:
    """`± 2.9, 3 seeds`: how far another seed would often move it, where that is known."""
    seeds = "one seed" if d.seeds == 1 else f"{d.seeds} seeds"
    return seeds if d.reach is None else f"± {100 * d.reach:.1f}, {seeds}"


def chosen_differences(rows: Sequence[Mapping[str, Any]]) -> dict[str, Difference]:
    """Set -> the chosen CAR minus CE, where both are recorded."""
    found = {}
    for data in dict.fromkeys(r["data"] for r in rows):
        car = chosen_car(rows, data)
        if car is not None and (d := difference(rows, data, car["name"], "ce")) is not None:
            found[data] = d
    return found


def chance_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the chosen CAR gains over CE on each set, and on which sets that is more than chance; empty where nothing is compared.

    Chance is what another seed would often do (95 %), or, where there is one seed only, twice the standard error of its test images.
    """
    found = chosen_differences(rows)
    if not found:
        return ""
    told: list[str] = []
    sides: dict[str, list[str]] = {"sure": [], "unsure": [], "unknown": []}
    for data, d in found.items():
        reach, how = d.reach, seeds_and_reach(d)
        if reach is None and d.sampling is not None:
            reach = 2 * d.sampling
            how = f"± {100 * reach:.1f} from its test images alone, {how}"
        told.append(f"{SETS[data]} {points(d.worst)} ({how})")
        sides["unknown" if reach is None else "sure" if abs(d.worst) > reach else "unsure"].append(SETS[data])
    said = f"Chosen CAR minus CE, points of the worst classes (± what another seed would often move): {', '.join(told)}."
    if sides["sure"]:
        said += f" More than chance on {listed(sides['sure'])}."
    if sides["unsure"]:
        said += f" No more than chance on {listed(sides['unsure'])}."
    if sides["unknown"]:
        said += f" One seed settles nothing on {listed(sides['unknown'])}."
    return said
