"""For each image, how coverage and area grow as the threshold falls: the one structure that every method
asks.

An image is covered at threshold tau by the share of its lesion pixels with score >= tau; its set area is
the share of all its pixels with score >= tau. `CoverageCurves` keeps both distributions of scores, exact or
in bins. Bins round lesion scores down and all scores up, so that binned coverage is never above the exact
one and binned area never below: a promise made in bins holds for the exact scores. Sets use >= everywhere,
evaluated as (tau_hat - score) <= t in float32, the same expression in calibration and test (the rounding
trap of computing tau_hat - t first is avoided).

Source of the view: weighted quantiles, METHODS 1.4; it is CRC (Angelopoulos et al., 2024) for a constant
tau_hat. This module calibrates nothing and knows no network.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

BIN_EDGES = torch.arange(-600, 601) / 40
"""Edges of the shipped tables in logits: 1/40 of a logit apart; a score on an edge stays exact."""


@dataclass(frozen=True)
class _Ragged:
    """Scores of N images behind one another: `value` (P,) float32, `count` (P,) or None for ones, `start` (N + 1,)."""

    value: torch.Tensor
    count: torch.Tensor | None
    start: torch.Tensor

    @property
    def lengths(self) -> torch.Tensor:
        return self.start[1:] - self.start[:-1]

    def image_of(self) -> torch.Tensor:
        """Index of the image of each entry, `(P,)` int32."""
        n = len(self.start) - 1
        return torch.repeat_interleave(torch.arange(n, dtype=torch.int32), self.lengths)

    @cached_property
    def dense(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Rows sorted by falling score, padded with -inf: values `(N, L)`, cumulative counts `(N, L + 1)` or None."""
        n, longest = len(self.start) - 1, int(self.lengths.max()) if len(self.start) > 1 else 0
        rows = torch.full((n, max(longest, 1)), -torch.inf)
        inside = torch.arange(rows.shape[1])[None] < self.lengths[:, None]
        rows[inside] = self.value
        if self.count is None:
            return rows.sort(dim=1, descending=True).values, None
        counts = torch.zeros(rows.shape, dtype=torch.float64)
        counts[inside] = self.count.double()
        rows, order = rows.sort(dim=1, descending=True, stable=True)
        total = torch.cat([torch.zeros(n, 1, dtype=torch.float64), counts.gather(1, order).cumsum(1)], 1)
        return rows, total

    def count_at_least(self, tau_hat: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        """How many pixels satisfy (tau_hat - score) <= shift. tau_hat `(N,)`, shift `(N, S)`; gives `(N, S)` float64."""
        rows, total = self.dense
        v = tau_hat.float()[:, None] - rows
        at = torch.searchsorted(v, shift.float().contiguous(), right=True)
        at = torch.minimum(at, self.lengths[:, None])
        return at.double() if total is None else total.gather(1, at)

    def select(self, index: torch.Tensor) -> _Ragged:
        pieces = [slice(int(self.start[i]), int(self.start[i + 1])) for i in index]
        start = torch.cat([torch.zeros(1, dtype=torch.int64), self.lengths[index].cumsum(0)])
        value = torch.cat([self.value[p] for p in pieces]) if pieces else self.value[:0]
        count = None if self.count is None else torch.cat([self.count[p] for p in pieces] or [self.count[:0]])
        return _Ragged(value, count, start)


def _join(parts: Sequence[_Ragged]) -> _Ragged:
    binned = any(p.count is not None for p in parts)
    counts = [p.count if p.count is not None else torch.ones_like(p.value, dtype=torch.int64) for p in parts]
    lengths = torch.cat([p.lengths for p in parts])
    start = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    return _Ragged(torch.cat([p.value for p in parts]), torch.cat(counts) if binned else None, start)


def _histogram(ragged: _Ragged, edges: torch.Tensor, down: bool) -> torch.Tensor:
    """Counts per image and edge, `(N, len(edges))` int64. Values outside the edges go to the outermost edge on the safe side."""
    n, k = len(ragged.start) - 1, len(edges)
    if down:
        if ragged.value.numel() and ragged.value.min() < edges[0]:
            raise ValueError(
                f"A lesion score of {float(ragged.value.min()):.3g} lies below the lowest bin edge {float(edges[0]):.3g}; "
                "clamp the scores or widen the edges."
            )
        at = torch.searchsorted(edges, ragged.value, right=True) - 1
    else:
        if ragged.value.numel() and ragged.value.max() > edges[-1]:
            raise ValueError(
                f"A score of {float(ragged.value.max()):.3g} lies above the highest bin edge {float(edges[-1]):.3g}; "
                "clamp the scores or widen the edges."
            )
        at = torch.searchsorted(edges, ragged.value, right=False)
    flat = ragged.image_of().long() * k + at
    weight = None if ragged.count is None else ragged.count.double()
    return torch.bincount(flat, weights=weight, minlength=n * k).reshape(n, k).round().long()


def _from_histogram(counts: torch.Tensor, edges: torch.Tensor) -> _Ragged:
    where = counts.nonzero(as_tuple=True)
    start = torch.cat([torch.zeros(1, dtype=torch.int64), (counts > 0).sum(1).cumsum(0)])
    return _Ragged(edges[where[1]].clone(), counts[where], start)


@dataclass(frozen=True)
class CoverageCurves:
    """Distributions of scores of N images, over lesion pixels and over all pixels.

    Attributes:
        names: N names.
        lesion: Scores of lesion pixels, image after image.
        pixels: Scores of all pixels, image after image.
        lesion_size: `(N,)` int64, lesion pixels m_i; 0 where there is no lesion.
        size: `(N,)` int64, pixels of the image.
        binned: Whether the scores were rounded to bins.
    """

    names: tuple[str, ...]
    lesion: _Ragged
    pixels: _Ragged
    lesion_size: torch.Tensor
    size: torch.Tensor
    binned: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def has_lesion(self) -> torch.Tensor:
        """`(N,)` bool: images with at least one lesion pixel. Only these count in coverage."""
        return self.lesion_size > 0

    @staticmethod
    def from_maps(
        scores: Iterable[torch.Tensor], masks: Iterable[torch.Tensor], names: Sequence[str] | None = None
    ) -> CoverageCurves:
        """Build exact curves.

        Args:
            scores: N maps `(H_i, W_i)` float, or one tensor `(N, H, W)`. Logits, in any finite range.
            masks: N masks of the same shapes, bool.
            names: N names; numbers are used when absent.

        Raises:
            ValueError: Shapes or numbers differ, a score is NaN, or there is no image.
        """
        lesion, pixels, m, size = [], [], [], []
        for i, (score, mask) in enumerate(zip(scores, masks, strict=True)):
            if score.shape != mask.shape:
                raise ValueError(
                    f"Image {i}: its scores have shape {tuple(score.shape)} and its mask {tuple(mask.shape)}. "
                    "They must be the same; nothing is stretched silently."
                )
            flat = score.detach().reshape(-1).float().cpu()
            inside = flat[mask.reshape(-1).bool().cpu()]
            lesion.append(inside)
            pixels.append(flat)
            m.append(inside.numel())
            size.append(flat.numel())
        if not size:
            raise ValueError("There is no image.")
        if any(torch.isnan(p).any() for p in pixels):
            raise ValueError("A score map contains NaN. Repair the map: a threshold on NaN means nothing.")
        names = tuple(str(i) for i in range(len(size))) if names is None else tuple(names)
        if len(names) != len(size):
            raise ValueError(
                f"There are {len(size)} images and {len(names)} names; give one name for each image."
            )
        m_t, size_t = torch.tensor(m), torch.tensor(size)
        zero = torch.zeros(1, dtype=torch.int64)
        return CoverageCurves(
            names,
            _Ragged(torch.cat(lesion), None, torch.cat([zero, m_t.cumsum(0)])),
            _Ragged(torch.cat(pixels), None, torch.cat([zero, size_t.cumsum(0)])),
            m_t,
            size_t,
        )

    def to_bins(self, edges: torch.Tensor = BIN_EDGES) -> CoverageCurves:
        """Round to bins on the safe side: lesion scores down to an edge, all scores up to an edge.

        Args:
            edges: `(B,)` rising float32 edges.

        Raises:
            ValueError: A score cannot be rounded on its safe side because it lies outside the edges.
        """
        pixels = _Ragged(self.pixels.value.clamp(min=float(edges[0])), self.pixels.count, self.pixels.start)
        return CoverageCurves(
            self.names,
            _from_histogram(_histogram(self.lesion, edges, down=True), edges),
            _from_histogram(_histogram(pixels, edges, down=False), edges),
            self.lesion_size,
            self.size,
            True,
        )

    @staticmethod
    def merge(parts: Sequence[CoverageCurves]) -> CoverageCurves:
        """Put several sets of images behind one another, binned and exact ones alike."""
        return CoverageCurves(
            tuple(name for p in parts for name in p.names),
            _join([p.lesion for p in parts]),
            _join([p.pixels for p in parts]),
            torch.cat([p.lesion_size for p in parts]),
            torch.cat([p.size for p in parts]),
            any(p.binned for p in parts),
        )

    def select(self, index: Sequence[int] | np.ndarray | torch.Tensor) -> CoverageCurves:
        """The curves of some images, in the given order; flags `(N,)` bool choose the flagged ones."""
        wanted = np.asarray(index)
        at = torch.as_tensor(np.flatnonzero(wanted) if wanted.dtype == bool else wanted, dtype=torch.int64)
        return CoverageCurves(
            tuple(self.names[int(i)] for i in at),
            self.lesion.select(at),
            self.pixels.select(at),
            self.lesion_size[at],
            self.size[at],
            self.binned,
        )

    def _shifts(self, shift: float | torch.Tensor) -> torch.Tensor:
        t = torch.as_tensor(shift, dtype=torch.float32)
        return t.reshape(1, -1).expand(len(self), -1) if t.ndim < 2 else t

    def coverage(self, tau_hat: torch.Tensor, shift: float | torch.Tensor = 0.0) -> torch.Tensor:
        """Share of each image's lesion in the set {score : tau_hat - score <= shift}.

        Args:
            tau_hat: `(N,)` float32, each image's own threshold in logits.
            shift: A number, `(S,)` shifts for all images, or `(N, S)`.

        Returns:
            `(N, S)` float64 in [0, 1]; NaN where an image has no lesion.
        """
        hits = self.lesion.count_at_least(tau_hat, self._shifts(shift))
        return torch.where(self.has_lesion[:, None], hits / self.lesion_size.clamp(min=1)[:, None], torch.nan)

    def area(self, tau_hat: torch.Tensor, shift: float | torch.Tensor = 0.0) -> torch.Tensor:
        """Share of each image's pixels in the set. Arguments and shape as in `coverage`."""
        return self.pixels.count_at_least(tau_hat, self._shifts(shift)) / self.size[:, None]

    def save(self, path: str | Path) -> None:
        """Write binned curves to a small compressed NPZ, atomically. Exact curves are binned first."""
        curves = self if self.binned else self.to_bins()
        edges = torch.unique(torch.cat([curves.lesion.value, curves.pixels.value, BIN_EDGES]))
        part = Path(path).with_suffix(".part.npz")
        np.savez_compressed(
            part,
            names=np.array(curves.names, dtype=np.str_),
            edges=edges.numpy(),
            lesion=_histogram(curves.lesion, edges, True).numpy().astype(np.uint32),
            pixels=_histogram(curves.pixels, edges, False).numpy().astype(np.uint32),
            size=curves.size.numpy(),
        )
        os.replace(part, path)

    @staticmethod
    def load(path: str | Path) -> CoverageCurves:
        """Read curves written by `save`.

        Raises:
            ValueError: The file is not such a table.
        """
        try:
            with np.load(path, allow_pickle=False) as z:
                raw = {key: z[key] for key in ("names", "edges", "lesion", "pixels", "size")}
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{Path(path).name} is not a table of coverage curves ({error}).") from error
        edges = torch.from_numpy(raw["edges"])
        lesion, pixels = (torch.from_numpy(raw[key].astype(np.int64)) for key in ("lesion", "pixels"))
        names, size = tuple(str(s) for s in raw["names"]), torch.from_numpy(raw["size"])
        return CoverageCurves(
            names, _from_histogram(lesion, edges), _from_histogram(pixels, edges), lesion.sum(1), size, True
        )
