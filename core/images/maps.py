"""A person's own score maps with their masks, checked and in one form: `read_maps` for uploads, `maps_from_arrays` for arrays.

Everything that was found is said in words; what only the person can know (logits or probabilities, which class, whether a mask may be
scaled) comes back as a `Question` with its fixes as choices, and nothing is computed before it is answered. `find_maps` unpacks
(`maps_files.py`), `settle` judges; a page unpacks once and settles again at every answer. No method and no threshold is known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from core.images.errors import BadImage
from core.images.limits import Limits
from core.images.maps_depth import ask_volume, channels_first, is_deep, opened
from core.images.maps_files import MAP_LIMITS, File, Found, Layer, find_maps
from core.images.maps_masks import foreground_of, ready_images, sized_masks
from core.images.maps_names import counted, listed
from core.images.maps_pairs import ask_twins, digest, paired, twins_of
from core.images.maps_values import Choice, Question, answer_of, check_scale, said_scale, scale_of, to_logits

__all__ = ["Choice", "Found", "Maps", "Question", "find_maps", "maps_from_arrays", "read_maps", "settle"]


@dataclass(frozen=True, eq=False)
class Maps:
    """Score maps of N images, ready for calibration once no question is open.

    Attributes:
        names: N names.
        scores: N maps `(H_i, W_i)` float32, logits within plus or minus 15; empty while a question is open.
        masks: N masks `(H_i, W_i)` bool, or None where there are none.
        images: N images `(H_i, W_i, 3)` uint8 on the maps' grids, or None.
        groups: Column of the CSV -> N values.
        notes: What was found and done, in plain sentences.
        questions: What must be settled first, in the order in which it should be asked.
        answers: How the files were read: question -> answer, given or plain from the files.
        problems: One sentence for each file that could not be read.
        digests: SHA-256 of each map's scores and shape.
    """

    names: tuple[str, ...]
    scores: tuple[torch.Tensor, ...] = field(repr=False)
    masks: tuple[torch.Tensor, ...] | None = field(repr=False)
    images: tuple[np.ndarray, ...] | None = field(repr=False)
    groups: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    questions: tuple[Question, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    digests: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def ready(self) -> bool:
        """Whether nothing is left to ask."""
        return not self.questions and bool(self.scores)

    @property
    def with_lesion(self) -> int:
        """Images whose mask marks something; 0 without masks."""
        return sum(bool(m.any()) for m in self.masks or ())


def read_maps(
    maps: Iterable[File],
    masks: Iterable[File] = (),
    images: Iterable[File] = (),
    groups: File | None = None,
    answers: Mapping[str, str] | None = None,
    limits: Limits = MAP_LIMITS,
) -> Maps:
    """Read score maps with what belongs to them; `find_maps` and `settle` in one. Arguments and errors are theirs."""
    return settle(find_maps(maps, masks, images, groups, limits), answers)


def settle(found: Found, answers: Mapping[str, str] | None = None) -> Maps:
    """Pair, check and scale what was found.

    Args:
        found: From `find_maps`.
        answers: Question -> chosen value, as far as the person has answered.

    Returns:
        `Maps`; with open questions, its scores are empty.

    Raises:
        BadImage: There is no map, nothing fits together, or an answer fits no question.
    """
    given = dict(answers or {})
    notes, used = list(found.notes), {}
    maps, masks, images = paired(found, notes)
    names = {k: layer.name for k, layer in maps.items()}
    open_: list[Question] = []

    if any(is_deep(maps[k], masks.get(k)) for k in maps):
        ask = ask_volume(maps)
        answer = answer_of(given, ask)
        if answer is None:
            return _waiting(names, [ask], notes, found)
        used["volume"] = answer
        maps, masks, images, names = opened(maps, masks, images, answer, notes)
    channel: int | None = None
    deep = [layer for layer in maps.values() if layer.array.ndim == 3]
    if deep:
        maps, ask = channels_first(maps, masks)
        answer = answer_of(given, ask)
        if answer is None:
            return _waiting(names, [ask], notes, found)
        used["channel"], channel = answer, int(answer)
        notes.append(
            f"Channel {answer} of {len(next(iter(maps.values())).array)} was taken as the lesion's score."
        )

    scale: str | Question
    if "scale" in given:
        scale = given["scale"]
        check_scale(list(maps.values()), scale, notes)
        notes.append(said_scale(list(maps.values()), scale))
    else:
        scale = scale_of(list(maps.values()), channel is not None, notes)
    missing = [
        k for k, layer in maps.items() if layer.array.dtype.kind == "f" and np.isnan(layer.array).any()
    ]
    nan = _ask_nan(maps, missing) if missing else None
    masks, size = sized_masks(maps, masks, channel is not None, given, used, notes)
    truth, foreground = foreground_of(masks, given, used, notes)
    pictures, odd = ready_images(maps, images, channel is not None, given, used, notes)
    for ask_ in (scale, nan, size, foreground, odd):
        if isinstance(ask_, Question) and answer_of(given, ask_) is None:
            open_.append(ask_)
    if open_:
        return _waiting(names, open_, notes, found)
    assert isinstance(scale, str)
    used["scale"] = scale

    keys = list(maps)
    if nan is not None:
        used["nan"] = given["nan"]
        if given["nan"] == "drop":
            keys = [k for k in keys if k not in missing]
            notes.append(
                f"{counted(len(missing), 'map')} with missing values left out: {listed([names[k] for k in missing])}."
            )
    if truth:
        keys = [k for k in keys if k in truth]
    scores = _scored({k: maps[k] for k in keys}, names, scale, channel, notes)
    prints = {k: digest(scores[k].numpy()) for k in keys}
    twins = twins_of(keys, scores, pictures, prints)
    if twins:
        ask = ask_twins(names, twins)
        if answer_of(given, ask) is None:
            return _waiting(names, [ask], notes, found)
        used["twins"] = given["twins"]
        again = {k for group in twins for k in group[1:]}
        keys = [k for k in keys if k not in again]
        notes.append(f"{counted(len(again), 'image')} that had come before left out.")
    if not keys:
        raise BadImage(
            "No map is left after all that. Bring maps that are complete and differ from one another."
        )
    return _finished(keys, names, scores, truth, pictures, found, notes, used, prints)


def _ask_nan(maps: dict[str, Layer], missing: Sequence[str]) -> Question:
    pixels = sum(int(np.isnan(maps[k].array).sum()) for k in missing)
    return Question(
        "nan",
        f"{pixels:,} values of {counted(len(missing), 'map')} are missing (NaN): {listed([maps[k].name for k in missing])}. "
        "What shall they count as?",
        (Choice("background", "As surely background"), Choice("drop", "Leave these maps out")),
    )


def _scored(
    maps: dict[str, Layer], names: dict[str, str], scale: str, channel: int | None, notes: list[str]
) -> dict[str, torch.Tensor]:
    scores: dict[str, torch.Tensor] = {}
    clamped = pixels = 0
    constant = []
    for k, layer in maps.items():
        values, cut = to_logits(layer.array, scale, channel)
        values = np.where(np.isnan(values), np.float32(-15), values)
        clamped, pixels = clamped + cut, pixels + values.size
        if values.size and values.min() == values.max():
            constant.append(names[k])
        scores[k] = torch.from_numpy(np.ascontiguousarray(values))
    if clamped:
        notes.append(
            f"{clamped:,} of {pixels:,} pixels lay beyond ±15 logits (closer to 0 or 1 than 0.0000003) and were set to that."
        )
    if constant:
        notes.append(
            f"{counted(len(constant), 'map')} the same everywhere, so they tell nothing: {listed(constant)}."
        )
    return scores


def _waiting(names: dict[str, str], questions: list[Question], notes: list[str], found: Found) -> Maps:
    return Maps(tuple(names.values()), (), None, None, {}, tuple(notes), tuple(questions), {}, found.problems)


def _finished(
    keys: list[str], names: dict[str, str], scores: dict[str, torch.Tensor], truth: dict[str, np.ndarray],
    pictures: dict[str, np.ndarray], found: Found, notes: list[str], used: dict[str, str], prints: dict[str, str],
) -> Maps:  # fmt: skip
    masks = tuple(torch.from_numpy(np.ascontiguousarray(truth[k])) for k in keys) if truth else None
    if masks is not None:
        empty, full = (
            sum(not bool(m.any()) for m in masks),
            [names[k] for k, m in zip(keys, masks, strict=True) if bool(m.all())],
        )
        if empty:
            notes.append(
                f"{counted(empty, 'mask')} empty: those images count nowhere in coverage and show up as false-alarm area."
            )
        if full:
            notes.append(
                f"{counted(len(full), 'mask')} full, every pixel marked: {listed(full)}. If that is a mistake, choose another foreground."
            )
    groups = {c: tuple(of.get(k.split("#")[0], "unknown") for k in keys) for c, of in found.groups.items()}
    return Maps(
        tuple(names[k] for k in keys), tuple(scores[k] for k in keys), masks,
        tuple(pictures[k] for k in keys) if pictures else None, groups, tuple(notes), (), used, found.problems,
        tuple(prints[k] for k in keys),
    )  # fmt: skip


def maps_from_arrays(
    scores: Sequence[np.ndarray],
    masks: Sequence[np.ndarray] | None = None,
    images: Sequence[np.ndarray] | None = None,
    names: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    answers: Mapping[str, str] | None = None,
) -> Maps:
    """The same checks for arrays that are in memory already.

    Args:
        scores: N maps `(H, W)`, or `(K, H, W)` with the answer "channel".
        masks: N masks `(H, W)` of any labels, or None.
        images: N images `(H, W, 3)` uint8, or None.
        names: N different names; numbers when None.
        groups: Column -> N values.
        answers: As for `settle`: {"scale": "probabilities"} or {"scale": "logits"}, for instance.

    Raises:
        BadImage: As for `settle`, or the numbers of arrays differ.
    """
    called = [f"{k:04d}" for k in range(len(scores))] if names is None else [str(n) for n in names]
    given = {
        "masks": masks,
        "images": images,
        "names": called,
        **{f"groups {c}": g for c, g in (groups or {}).items()},
    }
    for what, values in given.items():
        if values is not None and len(values) != len(scores):
            raise BadImage(
                f"There are {len(scores)} score maps and {len(values)} {what}; give one for each map."
            )
    if len(set(called)) != len(called):
        raise BadImage("Two maps have the same name. Give each its own.")

    def layers(arrays: Sequence[np.ndarray] | None) -> dict[str, Layer]:
        return (
            {}
            if arrays is None
            else {n: Layer(n, n, np.asarray(a)) for n, a in zip(called, arrays, strict=True)}
        )

    columns = {c: dict(zip(called, map(str, values), strict=True)) for c, values in (groups or {}).items()}
    return settle(Found(layers(scores), layers(masks), layers(images), columns), answers)
