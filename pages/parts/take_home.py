"""Download buttons of the coverage page. Files are made when they are asked for, not on every rerun."""

from __future__ import annotations

import json
from datetime import date

import streamlit as st

from core.figures.export import to_svg
from core.figures.spread import resample_histogram
from core.figures.strip import strip_chart, thresholds_chart
from core.figures.trade import gap_against_area
from core.lab.promise import Promise
from core.lab.report import html_report
from core.lab.study import Split
from core.lab.take_away import (
    chart_rows,
    image_rows,
    outlines_png,
    pool_rows,
    promise_settings,
    study_rows,
    to_csv,
    trade_lines,
)
from pages.parts import shelf
from pages.parts.evidence import parts_of


def show(split: Split, shown: Promise | None, uploads: list[Promise]) -> None:
    """Everything that can be taken away, in one row that wraps."""
    promises = uploads or ([shown] if shown else [])
    with st.container(horizontal=True, gap="small"):
        if shown:
            _button(
                "Outlines (PNG)",
                lambda: outlines_png(shown),
                f"{_file(shown.name)}-outlines.png",
                "image/png",
                "outlines",
            )
            _button(
                "Settings (JSON)",
                lambda: _json(promises, split.seed),
                "plumbline-settings.json",
                "application/json",
                "settings",
            )
            _button(
                "Images (CSV)",
                lambda: to_csv(image_rows(promises)),
                "plumbline-images.csv",
                "text/csv",
                "images",
            )
        _button(
            "Methods (CSV)", lambda: to_csv(study_rows(split)), "plumbline-methods.csv", "text/csv", "methods"
        )
        _button(
            "Study images (CSV)", lambda: to_csv(pool_rows(split)), "plumbline-study.csv", "text/csv", "pool"
        )
        for name, make in _charts(split).items():
            _button(
                f"{name} (SVG)",
                make,
                f"plumbline-{name.lower().replace(' ', '-')}.svg",
                "image/svg+xml",
                f"svg-{name}",
            )
        _button(
            "Report (HTML)", lambda: _report(split, promises), "plumbline-report.html", "text/html", "report"
        )


def _button(label: str, make: object, file: str, mime: str, key: str) -> None:
    st.download_button(
        label, make, file, mime, key=f"take-{key}", on_click="ignore", icon=":material/download:"
    )  # type: ignore[arg-type]


def _file(name: str) -> str:
    return (
        "".join(c if c.isalnum() or c in "-_" else "-" for c in name.rsplit("/", 1)[-1].split(".")[0])[:60]
        or "image"
    )


def _json(promises: list[Promise], seed: int) -> bytes:
    return json.dumps([promise_settings(p, seed) for p in promises], indent=1).encode()


def _charts(split: Split) -> dict[str, object]:
    names, parts = split.study.curves.names, parts_of(split)
    coverage = {m: split.coverage(m) for m in ("CRC", "COAT")}
    lesion = (split.study.curves.lesion_size / split.study.curves.size).numpy()

    def spread() -> bytes:
        draws = shelf.spread(split.study.name, split.alpha, split.seed, split.delta)
        return to_svg(
            resample_histogram(draws, split.alpha, {m: split.evaluations[m].coverage for m in draws})
        )

    return {
        "Strip": lambda: to_svg(strip_chart(names, parts, coverage, split.alpha, show="test")),
        "Thresholds": lambda: to_svg(
            thresholds_chart(
                names,
                split.tau("COAT").numpy(),
                float(split.tau("CRC")[0]),
                lesion,
                crc_coverage=coverage["CRC"],
                parts=parts,
                show="test",
            )
        ),
        "Gap against area": lambda: to_svg(
            gap_against_area(chart_rows(split), alpha=split.alpha, curves=trade_lines(split))
        ),
        "Resamples": spread,
    }


def _report(split: Split, promises: list[Promise]) -> bytes:
    spread = shelf.spread(split.study.name, split.alpha, split.seed, split.delta)
    return html_report(split, promises, split.seed, date=date.today().isoformat(), spread=spread).encode()
