"""What is said of a person's own classifier, and every number of it as rows and as JSON. Computed, never fixed text."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from core.car.metrics import FEW, FEW_CLASSES, MANY
from core.lab.tail_own_measure import OwnAnswer, Stream

WEIGHT_WORDS = {
    "none": "without weights of classes",
    "sum": "with Λ, frequencies that sum to one",
    "max": "with Λ, frequencies divided by the largest",
}


def percent(share: float) -> str:
    """A share in per cent, one digit behind the point near 0 and 100."""
    if 0.9995 <= share < 1 - 1e-9:
        return "over 99.9\u00a0%"
    text = f"{100 * share:.1f}" if 0 < share < 0.0995 or 0.9905 < share < 0.9995 else f"{100 * share:.0f}"
    return f"{text}\u00a0%"


def _worst_of(answer: OwnAnswer) -> str:
    name = answer.classes[answer.worst]
    many = int(np.sum(answer.figures.recall == answer.figures.worst))
    return f"“{name}”" + (f" (and {many - 1} more)" if many > 1 else "")


def headline(answer: OwnAnswer) -> str:
    """The worst class beside all of them."""
    f = answer.figures
    if answer.perfect:
        return f"Your classifier makes no error on these samples, so nobody pays and there is no spectrum ({len(answer.classes)} classes)."
    every = "all classes on average" if answer.own.alike else "all samples"
    return (
        f"Your classifier is right on {percent(f.overall)} of {every}, and on {percent(f.worst)} of its worst class, {_worst_of(answer)}. "
        f"σ₁ of its errors{'' if answer.weighting == 'none' else ', weighted by Λ,'} is {answer.spectrum.sigma:.2f}."
    )


def flow_sentence(answer: OwnAnswer, top: int = 3) -> str:
    """What the worst class loses, to whom, and whose samples it takes."""
    if answer.perfect or not answer.lost:
        return ""
    name = answer.classes[answer.worst]
    lost = 1 - answer.figures.worst
    text = f"“{name}” loses {percent(lost)} of its samples{_listed(answer, answer.lost, top)}."
    if answer.gained and answer.own.alike:  # how much of it depends on how many samples each class has
        return text
    if answer.gained:
        first = answer.gained[0]
        share = sum(s.share for s in answer.gained)
        many = "" if answer.own.shares else f" ({_samples(sum(s.samples for s in answer.gained))})"
        text += f" Of what is called “{name}”, {percent(share)} is something else{many}, most of it “{answer.classes[first.other]}”."
    elif answer.test[answer.worst].sum() == 0:
        text += f" Nothing at all is called “{name}”."
    else:
        text += f" Nothing else is called “{name}”."
    return text


def _samples(n: float) -> str:
    return f"{n:,.0f} sample{'' if n == 1 else 's'}"


def _listed(answer: OwnAnswer, streams: tuple[Stream, ...], top: int) -> str:
    if len(streams) == 1:
        return f", all of them called “{answer.classes[streams[0].other]}”"
    said = [
        f"{percent(s.share)}{' are called' if k == 0 else ''} “{answer.classes[s.other]}”"
        for k, s in enumerate(streams[:top])
    ]
    rest = sum(s.share for s in streams[top:])
    if rest > 0:
        said.append(f"{percent(rest)} something else")
    return f": {', '.join(said[:-1])} and {said[-1]}"


def spectrum_sentence(answer: OwnAnswer) -> str:
    """How much of all errors one pair of directions holds, and which class feeds which most."""
    if answer.perfect:
        return ""
    flows = answer.flows(1)
    text = f"The top singular pair holds {percent(answer.spectrum.share)} of the squared error rates ({WEIGHT_WORDS[answer.weighting]})"
    if not flows:
        return text + "."
    f = flows[0]
    return f"{text}; its heaviest stream runs from “{answer.classes[f.true]}” to “{answer.classes[f.predicted]}”, {percent(f.rate)} of that class."


def bound_sentence(answer: OwnAnswer) -> str:
    """The bound beside the truth, and when it says nothing."""
    b = answer.bound
    if answer.perfect or math.isnan(b.worst_error):
        return ""
    name, root = answer.classes[b.worst], f"√{len(answer.classes)} σ₁"
    promised = (
        f"From σ₁ alone, no class can lose more than {root} = {b.of_worst:.2f}"
        if answer.weighting == "none"
        else f"From σ₁ alone, “{name}” can lose no more than {root} / w = {b.of_worst:.2f}, and no class more than {b.worst_bound:.2f}"
    )
    if b.vacuous:
        return f"{promised}. That is 1 or more, so the bound says nothing here; the truth is {b.worst_error:.2f}."
    return f"{promised} of its samples; the truth is {b.worst_error:.2f}."


def survival_sentence(answer: OwnAnswer) -> str:
    """WR, or what is missing for it."""
    s = answer.survival
    if s is None:
        return "With predictions on the training samples you would also see how much of the worst class's training recall survives (WR)."
    name = answer.classes[answer.worst]
    if math.isnan(s.train):
        return f"“{name}” has no training sample here, so what survives of its training recall is not known."
    if math.isnan(s.wr):
        return f"“{name}” is never right on the training samples either, so WR has no value: it is not learned at all."
    other = ""
    if not math.isnan(s.ratio_of_minima) and abs(s.ratio_of_minima - s.wr) > 0.005:
        other = (
            f" (Worst test over worst training recall, of two different classes: {s.ratio_of_minima:.2f}.)"
        )
    return (
        f"On the training samples “{name}” is right {percent(s.train)} of the time, on the test samples {percent(s.test)}: WR is "
        f"{s.wr:.2f}.{other}"
    )


def chance_sentence(answer: OwnAnswer) -> str:
    """How sure the worst recall is, from how few samples it comes."""
    if answer.worst < 0:
        return ""
    low, high = answer.interval[answer.worst]
    if math.isnan(low):
        return "How many samples stand behind a share is not known, so no interval can be given."
    n = answer.samples[answer.worst]
    return (
        f"“{answer.classes[answer.worst]}” has {n:,.0f} test sample{'' if n == 1 else 's'}: for one class chosen beforehand the recall would lie "
        f"between {percent(float(low))} and {percent(float(high))} (95\u00a0%). The worst of {len(answer.classes)} was chosen after looking, so it "
        "looks worse than it is."
    )


def left_out_sentence(answer: OwnAnswer) -> str:
    """Classes without a sample."""
    n = answer.figures.left_out
    if not n:
        return ""
    return f"{n} class{'' if n == 1 else 'es'} without a test sample {'is' if n == 1 else 'are'} left out of the worst class and of every mean."


def sentences(answer: OwnAnswer) -> list[str]:
    """Everything that is said, headline first."""
    every = (
        headline(answer),
        flow_sentence(answer),
        spectrum_sentence(answer),
        bound_sentence(answer),
        survival_sentence(answer),
        chance_sentence(answer),
        left_out_sentence(answer),
    )
    return [s for s in every if s]


def class_rows(answer: OwnAnswer) -> list[dict[str, object]]:
    """One row a class, from head to tail where counts are known."""
    rows: list[dict[str, object]] = []
    said = answer.test.sum(1)
    for k, name in enumerate(answer.classes):
        column = answer.test[:, k].copy()
        column[k] = 0
        goes = int(column.argmax()) if column.sum() > 0 else -1
        rows.append(
            {
                "class": name,
                "trained_on": math.nan if answer.counts is None else float(answer.counts[k]),
                "test_samples": float(answer.samples[k]),
                "recall": float(answer.figures.recall[k]),
                "recall_low": float(answer.interval[k, 0]),
                "recall_high": float(answer.interval[k, 1]),
                "train_recall": float(answer.train_recall[k]),
                "precision": float(answer.test[k, k] / said[k])
                if said[k] > 0 and not answer.own.alike
                else math.nan,
                "most_called": "" if goes < 0 else answer.classes[goes],
                "most_called_rate": math.nan if goes < 0 else float(answer.plain.rates[goes, k]),
                "bound": float(answer.bound.per_class[k]),
                "weight": float(answer.spectrum.weights[k]),
                "u": float(answer.spectrum.u[k]),
                "v": float(answer.spectrum.v[k]),
            }
        )
    return rows


def flow_rows(answer: OwnAnswer, top: int = 20) -> list[dict[str, object]]:
    """One row a stream of the top pair, heaviest first."""
    return [
        {
            "true": answer.classes[f.true],
            "predicted": answer.classes[f.predicted],
            "rate": f.rate,
            "weighted": f.weighted,
            "in_pair": f.in_pair,
        }
        for f in answer.flows(top)
    ]


def figure_rows(answer: OwnAnswer) -> list[tuple[str, float, str]]:
    """(figure, value, what it means), for tables."""
    f, s = answer.figures, answer.survival
    rows = [
        (
            "overall accuracy",
            f.overall,
            "share of samples that are right"
            if not answer.own.alike
            else "mean over classes: how frequent they are is not known",
        ),
        ("mean recall", f.mean_recall, "balanced accuracy, over classes with a sample"),
        (
            "macro F1",
            f.macro_f1,
            "mean F1 over classes with a sample"
            + (", as if all were equally frequent" if answer.own.alike else ""),
        ),
        ("worst class", f.worst, f"recall of {_worst_of(answer)}"),
    ]
    if len(answer.own.classes) > FEW_CLASSES:
        rows.append(("mean of the worst ten", f.worst_ten, "recall of the ten classes found least"))
    if answer.counts is not None:
        few = len(answer.own.classes) <= FEW_CLASSES
        rows += [
            ("head", f.head, f"mean recall of the classes with {'most' if few else f'more than {MANY}'} training samples"),
            ("medium", f.medium, "of those between"),
            ("tail", f.tail, f"of those with {'fewest' if few else f'fewer than {FEW}'}"),
        ]  # fmt: skip
    rows += [
        ("σ₁", answer.plain.sigma, "largest singular value of the error rates, without weights"),
        (
            "bound",
            answer.bound.of_worst,
            f"√K σ₁ / w of the worst class, {WEIGHT_WORDS[answer.weighting]}; 1 or more says nothing",
        ),
        ("worst error", answer.bound.worst_error, "the truth beside the bound"),
    ]
    if answer.weighting != "none":
        rows.insert(-2, ("σ₁ with Λ", answer.spectrum.sigma, WEIGHT_WORDS[answer.weighting]))
    if s is not None:
        rows.append(("WR", s.wr, "test over training recall of the class that is worst on the test samples"))
        rows.append(("ratio of minima", s.ratio_of_minima, "worst test over worst training recall"))
    return rows


def facts(answer: OwnAnswer) -> dict[str, Any]:
    """Everything as JSON-able values."""
    try:
        library = version("plumbline")
    except PackageNotFoundError:
        library = "unknown"
    own = answer.own
    return {
        "format": "plumbline-confusion", "version": 1, "library": library,
        "settings": {"reading": own.answers, "weights": answer.weighting, "order": "head to tail" if answer.counts is not None else "as brought"},
        "notes": list(own.notes), "sentences": sentences(answer),
        "classes": list(answer.classes), "counts": None if answer.counts is None else _entries(answer.counts),
        "confusion": {"axes": "rows predicted, columns true", "shares": own.shares, "alike": own.alike, "test": _entries(answer.test),
                      "train": None if answer.train is None else _entries(answer.train)},
        "figures": {name: _number(value) for name, value, _ in figure_rows(answer)},
        "worst_class": answer.classes[answer.worst] if answer.worst >= 0 else None, "left_out": answer.figures.left_out,
        "singular_values": [float(v) for v in answer.spectrum.values], "share_of_top_pair": _number(answer.spectrum.share),
        "bound": {"worst": _number(answer.bound.of_worst), "any_class": _number(answer.bound.worst_bound),
                  "truth": _number(answer.bound.worst_error), "vacuous": answer.bound.vacuous},
        "per_class": [_plain(r) for r in class_rows(answer)], "flows": [_plain(r) for r in flow_rows(answer)],
    }  # fmt: skip


def _entries(values: np.ndarray) -> list[Any]:
    """An array as lists, whole numbers as such."""
    whole = bool((values == np.rint(values)).all())
    return list((values.astype(np.int64) if whole else values).tolist())


def _plain(row: dict[str, object]) -> dict[str, object]:
    return {k: _number(v) if isinstance(v, float) else v for k, v in row.items()}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
