"""Sparse: how much should a layer throw away? λ under corruption, and what following it without labels brings beside what BN alone brings."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.lab import sparse_shelf
from core.lab.sparse_names import beside, epochs_of
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_view import title_of
from core.tacsc.adapt import adapt
from core.tacsc.function import encode, unit_atoms
from core.tacsc.geometry import geometry
from core.tacsc.hypergradient import local_error
from core.tacsc.layer import CSCConv2d
from core.tacsc.lipschitz import power_iteration
from core.tacsc.norms import refresh_norms
from core.tacsc.objective import relative_error, sparsity
from core.tacsc.shift_score import Reference, wishes
from pages import header
from pages.parts import (
    lesson,
    shelf,
    sparse_evidence,
    sparse_first,
    sparse_gain,
    sparse_here,
    sparse_pictures,
)
from pages.parts.sparse_first import Scene

FALLBACK = "tacsc-k2-w16-s0"
"""Network that is looked for where nothing is recorded."""


def records_of() -> tuple[Mapping[str, SparseRecord], str]:
    """The recorded runs, and why there are none."""
    try:
        return sparse_shelf.records(), ""
    except (FileNotFoundError, ValueError) as problem:
        return {}, str(problem)


def resnet_of(records: Mapping[str, SparseRecord], key: str) -> SparseRecord | None:
    """The ResNet that was trained as the chosen network was, if its figures are recorded."""
    found = beside(records.values(), records[key]) if key in records else None
    return found if found is not None and found.cells else None


def network_chooser(records: Mapping[str, SparseRecord]) -> str:
    """The key of the network, in the address: those that are recorded and whose λ was trained."""
    offered = {
        key: title_of(r) for key, r in records.items() if r.model in ("tacsc", "tacsc_all") and r.cells
    }
    if not offered:
        return FALLBACK
    first = next(
        (key for key, r in records.items() if key in offered and r.model == "tacsc"), next(iter(offered))
    )
    return str(
        st.selectbox(
            "Network",
            list(offered),
            index=list(offered).index(first),
            format_func=lambda key: offered.get(key, key),
            key="net",
            bind="query-params",
            label_visibility="collapsed",
            width=190,
        )
    )


def assumed(scene: Scene) -> None:
    """What is promised and assumed: nothing, and what the objective is worth."""
    st.markdown(
        "**What is promised, and what it assumes.** Nothing is promised. Accuracies are measurements on test images under drawn damage; adaptation "
        "has no labels and cannot know whether it helps. It assumes that the unlabelled images are damaged like those to come, and that a smaller "
        "R/(λ + ε) is a better λ. That is a hope: the objective's global minimum is λ = ∞, where nothing is left of the image, only guards hold λ, "
        "and at K = 2 λ drifts upwards on clean images too. Refreshing batch normalisation (BN) on the same images is older and explains most of any "
        "gain; it stands beside every gain here, for a plain ResNet too where one was trained alike."
    )
    if scene.record is not None:
        st.caption(
            f"{title_of(scene.record)} of width {scene.record.width}, trained on {scene.record.images:,} images of CIFAR-10 for "
            f"{epochs_of(scene.record)} epochs, one seed. The images "
            "that adaptation saw are not scored."
        )


def main() -> None:
    """Draw the page."""
    records, problem = records_of()
    with header.place():
        key = network_chooser(records)
    _, seed = shelf.model_and_seed()
    first, here = st.container(), st.container()
    with here:
        st.subheader("Watch it adapt")
        mine = sparse_pictures.drop_here(seed)
    scene = Scene(
        key,
        records.get(key),
        resnet_of(records, key),
        problem or f"The network {key} is not recorded.",
        mine,
        seed,
    )
    with first:
        sparse_first.show(scene)
    with here:
        sparse_here.show(scene)
    assumed(scene)
    sparse_evidence.show(scene)
    sparse_gain.show(scene, records)
    lesson.show("sparse")
    lesson.formula(FORMULAS)
    lesson.code(
        [unit_atoms, encode, CSCConv2d, geometry, power_iteration, relative_error, sparsity, local_error, adapt, refresh_norms, wishes, Reference]
    )  # fmt: skip


FORMULAS = [
    (
        "A sparse coding layer does not filter its input x, it explains it: with few atoms D whose sum rebuilds it. λ says what an atom costs.",
        r"T=\arg\min_{c}\ \tfrac12\lVert x-Dc\rVert^2+\lambda\lVert c\rVert_1",
    ),
    (
        "K steps of FISTA find it, a convolution and its adjoint at a time; L bounds how steep the first term is. With K = 2 the momentum does not "
        "act yet.",
        r"T_k=S_{\lambda/L}\!\Big(Y_{k-1}-\tfrac1L D^\top(DY_{k-1}-x)\Big),\qquad S_\tau(u)=\mathrm{sign}(u)\,(|u|-\tau)_+",
    ),
    (
        "Training turns λ of every layer like a weight. The mean absolute code is a price that pushes λ up; the task pushes where it needs.",
        r"\lambda_n=\log\!\big(1+e^{\rho_n}\big),\qquad L=\mathrm{CE}+\gamma\sum_n\frac{\lVert T_n\rVert_1}{|T_n|}",
    ),
    (
        "Adaptation, without labels: everything but λ is frozen, and the squared relative error of each layer over λ is made smaller.",
        r"\min_{\lambda}\ \sum_n\frac{R_n}{\lambda_n+\varepsilon},\qquad R_n=\frac{\lVert T_{n-1}-D_nT_n\rVert^2}{\lVert T_{n-1}\rVert^2}",
    ),
    (
        "Why guards: as λ grows T becomes 0 and R becomes 1, so the objective falls to 0. Its global minimum is at infinity; a useful λ is only a "
        "shallow dip, where",
        r"\frac{d\log R}{d\log(\lambda+\varepsilon)}=1,\qquad \frac{R}{\lambda+\varepsilon}\ \longrightarrow\ 0\quad(\lambda\to\infty)",
    ),
    (
        "How far λ and R want to move on n new images is a score of shift: f holds the pulls and log R of all F/2 layers, mean μ and covariance Σ "
        "those of clean images.",
        r"s=\frac nF\,(\bar f-\mu)^\top\Sigma^{-1}(\bar f-\mu)\ \approx\ 1\quad\text{on images like the clean ones}",
    ),
]

main()
