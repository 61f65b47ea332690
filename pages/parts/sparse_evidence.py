"""How λ moves: over training, by corruption and severity, on its objective, and the plane of sparsity and reconstruction. Only the open tab computes.

It draws; `core.lab.sparse_view` reads records and `core.lab.sparse_words` finds the words.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.data.corruptions import CORRUPTIONS
from core.figures.sparse_plane import plane as plane_chart
from core.figures.sparse_severity import lambda_map, lambda_severity
from core.figures.sparse_training import epoch_lines, lambda_training
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_view import measured, plane, severity, story
from core.lab.sparse_words import clean_words, plane_words, story_words
from pages.parts import sparse_valley
from pages.parts.sparse_chart import FAMILY_OF, chart, narrow, words_of
from pages.parts.sparse_first import Scene, now

TABS = ("λ over training", "λ by corruption", "The objective over λ", "Sparsity and reconstruction")


def show(scene: Scene) -> None:
    """Four views in tabs; the third needs a network and no record."""
    st.subheader("How λ moves")
    compact = narrow("sparse-moves")
    for tab, name in zip(st.tabs(TABS, key="sparse-evidence", on_change="rerun"), TABS, strict=True):
        if not tab.open:
            continue
        with tab:
            if name == TABS[2]:
                sparse_valley.show(scene, compact)
            elif scene.record is None:
                st.info(scene.problem, icon=":material/info:")
            else:
                DRAW[name](scene.record, compact)


def _training(record: SparseRecord, compact: bool) -> None:
    view = story(record)
    phases = [(p.words, p.start, p.end) for p in view.phases]
    chart(
        lambda_training(
            view.names, view.steps, view.threshold, phases=phases, per_epoch=view.per_epoch, compact=compact
        ),
        "sparse-training",
    )
    st.markdown(story_words(view))
    chart(
        epoch_lines(view.names, view.sparsity, view.error, accuracy=view.accuracy, compact=compact),
        "sparse-epochs",
    )
    st.caption(
        f"{view.title}, {view.epochs} epochs. Bands: what the layers' mean log λ does. Sparsity and error are measured on 200 training images "
        "after each epoch, accuracy on the augmented images of the epoch."
    )


def _corruptions(record: SparseRecord, compact: bool) -> None:
    there, (here, _) = measured(record), now()
    order = [here, *(c for c in there if c != here)] if here in there else list(there)
    views = {c: severity(record, c) for c in order}
    if not views:
        st.info("No corruption was measured in this run.", icon=":material/info:")
        return
    first = views[order[0]]
    relative = st.toggle(
        "As a multiple of the trained λ", value=len(first.names) > 1, key="sparse-relative", help="So that layers can be compared."
    )  # fmt: skip
    figure = lambda_severity(
        first.names, range(6), {words_of(c): v.threshold for c, v in views.items()}, trained=first.trained, relative=relative, compact=compact
    )  # fmt: skip
    chart(figure, "sparse-severity")
    st.markdown(clean_words(first))
    layer = 0
    if len(first.names) > 1:
        layer = int(
            st.selectbox(
                "Layer of the map", range(len(first.names)), format_func=first.names.__getitem__, key="sparse-layer", width=220
            )
        )  # fmt: skip
    shown = [c for c in CORRUPTIONS if c in views]
    chart(
        lambda_map(
            ["clean", *map(words_of, shown)],
            range(1, 6),
            np.array([[first.threshold[0, layer]] * 5, *(views[c].threshold[1:, layer] for c in shown)]),
            trained=float(first.trained[layer]),
            layer=first.names[layer],
            families=["clean", *(FAMILY_OF[c] for c in shown)],
            compact=compact,
        ),
        "sparse-map",
    )
    st.caption(
        "The row of clean images is measured once and stands in every column: what λ does without any damage."
    )


def _plane(record: SparseRecord, compact: bool) -> None:
    view = plane(record)
    figure = plane_chart(
        view.names, view.epochs.tolist(), view.sparsity, 1 - view.kept, accuracy=view.accuracy.tolist(), threshold=view.threshold, compact=compact
    )  # fmt: skip
    chart(figure, "sparse-plane")
    st.markdown(plane_words(view))


DRAW = {TABS[0]: _training, TABS[1]: _corruptions, TABS[3]: _plane}
