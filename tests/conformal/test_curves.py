"""CoverageCurves: counts against a plain loop, bins on the safe side, merging, choosing, and the file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.conformal import BIN_EDGES, CoverageCurves, calibrate

SHIFTS = torch.tensor([-40.0, -3.0, -0.125, 0.0, 0.125, 1.5, 4.0, 40.0, torch.inf])


def same(a: CoverageCurves, b: CoverageCurves, tau: torch.Tensor, shifts: torch.Tensor = SHIFTS) -> None:
    """Both answer every question alike."""
    assert a.names == b.names
    assert torch.equal(a.lesion_size, b.lesion_size)
    assert torch.equal(a.size, b.size)
    torch.testing.assert_close(
        a.coverage(tau, shifts), b.coverage(tau, shifts), rtol=0, atol=0, equal_nan=True
    )
    torch.testing.assert_close(a.area(tau, shifts), b.area(tau, shifts), rtol=0, atol=0)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_coverage_and_area_equal_a_plain_loop(pools, data):
    pool, tau = data.draw(pools(ties=data.draw(st.booleans())))
    shifts = torch.cat([SHIFTS, (tau[0] - pool.maps[0][0, :1])])
    coverage, area = pool.curves.coverage(tau, shifts), pool.curves.area(tau, shifts)
    for i, (score, mask) in enumerate(zip(pool.maps, pool.masks, strict=True)):
        for s, shift in enumerate(shifts):
            inside = (tau[i] - score) <= shift
            assert area[i, s].item() == inside.sum().item() / inside.numel()
            if mask.any():
                assert coverage[i, s].item() == inside[mask].sum().item() / mask.sum().item()
            else:
                assert torch.isnan(coverage[i, s])


def test_a_shift_may_be_a_number_a_row_or_a_table(toy):
    pool = toy.make_pool(5, 0)
    tau = torch.linspace(-1, 1, 5)
    row = torch.tensor([0.0, 1.0, 2.0])
    table = pool.curves.coverage(tau, row)
    assert table.shape == (5, 3)
    assert torch.equal(pool.curves.coverage(tau, 1.0)[:, 0], table[:, 1])
    own = torch.tensor([0.0, 1.0, 2.0, 1.0, 0.0])
    assert torch.equal(pool.curves.coverage(tau, own[:, None])[:, 0], table[torch.arange(5), own.long()])


def test_coverage_never_falls_as_the_shift_grows(toy):
    pool = toy.make_pool(20, 1)
    tau = toy.plug_in(pool, 0.1)
    shifts = torch.linspace(-20, 20, 101)
    for table in (pool.curves.coverage(tau, shifts), pool.curves.area(tau, shifts)):
        assert (table.diff(dim=1) >= 0).all()
        assert (table[:, 0] == 0).all()
        assert (table[:, -1] == 1).all()


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_bins_round_coverage_down_and_area_up(pools, data):
    pool, tau = data.draw(pools(ties=False))
    wide = torch.tensor(
        sorted({-15.0, 15.0, *data.draw(st.lists(st.integers(-14, 14).map(float), max_size=6))})
    )
    edges = data.draw(st.sampled_from([BIN_EDGES, wide]))
    binned = pool.curves.to_bins(edges)
    shifts = torch.tensor(data.draw(st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=5)))
    has = pool.curves.has_lesion
    assert (binned.coverage(tau, shifts)[has] <= pool.curves.coverage(tau, shifts)[has]).all()
    assert (binned.area(tau, shifts) >= pool.curves.area(tau, shifts)).all()


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_promise_made_in_bins_holds_for_the_exact_scores(pools, data):
    pool, tau = data.draw(pools(ties=False))
    alpha = data.draw(st.sampled_from([0.1, 0.3, 0.5, 0.8]))
    coarse, exact = calibrate(pool.curves.to_bins(), tau, alpha), calibrate(pool.curves, tau, alpha)
    assert coarse.shift >= exact.shift
    assert coarse.feasible == exact.feasible
    if coarse.feasible:
        assert coarse.shift <= exact.shift + 1 / 40 + 1e-5
        reached = pool.curves.coverage(tau, coarse.shift)[pool.curves.has_lesion].sum()
        assert reached >= (coarse.n + 1) * (1 - alpha) - 1e-9


def test_scores_on_an_edge_stay_exact(toy):
    pool = toy.make_pool(12, 2, ties=True, empty=2)  # multiples of 1/4, all of them edges
    assert pool.curves.to_bins().binned
    assert not pool.curves.binned
    same(pool.curves.to_bins(), pool.curves, torch.zeros(14))


def test_binning_twice_changes_nothing(toy):
    pool = toy.make_pool(6, 3, ties=False)
    once = pool.curves.to_bins()
    same(once.to_bins(), once, toy.plug_in(pool, 0.1))


@pytest.mark.parametrize(("score", "where"), [(-15.5, "below the lowest"), (15.5, "above the highest")])
def test_a_score_that_cannot_be_rounded_safely_is_refused(score, where):
    curves = CoverageCurves.from_maps([torch.tensor([[score, 0.0]])], [torch.tensor([[True, False]])])
    with pytest.raises(ValueError, match=where):
        curves.to_bins()


def test_low_scores_outside_the_lesion_are_rounded_up_to_the_lowest_edge():
    curves = CoverageCurves.from_maps([torch.tensor([[-99.0, 0.0]])], [torch.tensor([[False, True]])])
    assert curves.to_bins().area(torch.tensor([-15.0])).item() == 1.0
    assert curves.area(torch.tensor([-15.0])).item() == 0.5


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_merging_parts_equals_building_at_once(pools, data):
    (a, tau_a), (b, tau_b) = data.draw(pools()), data.draw(pools())
    merged = CoverageCurves.merge([a.curves, b.curves])
    names = [*a.curves.names, *b.curves.names]
    whole = CoverageCurves.from_maps(a.maps + b.maps, a.masks + b.masks, names)
    same(merged, whole, torch.cat([tau_a, tau_b]))
    # all scores are multiples of 1/8 and so on edges: binned and exact parts may be mixed
    same(CoverageCurves.merge([a.curves.to_bins(), b.curves]), whole, torch.cat([tau_a, tau_b]))


@pytest.mark.parametrize("binned", [False, True])
def test_choosing_images_keeps_their_curves_and_the_order(toy, binned):
    pool = toy.make_pool(9, 4, empty=2)
    curves = pool.curves.to_bins() if binned else pool.curves
    tau = torch.linspace(-2, 2, 11)
    index = [7, 0, 10, 3]
    chosen = curves.select(index)
    assert chosen.names == ("7", "0", "10", "3")
    assert chosen.binned == binned
    table = curves.coverage(tau, SHIFTS)[index]
    torch.testing.assert_close(chosen.coverage(tau[index], SHIFTS), table, rtol=0, atol=0, equal_nan=True)
    same(CoverageCurves.merge([curves.select(range(4)), curves.select(range(4, 11))]), curves, tau)
    assert len(curves.select([])) == 0


def test_choosing_by_flags_means_the_flagged_images(toy):
    curves = toy.make_pool(6, 5).curves
    flags = np.array([False, True, False, False, True, True])
    assert curves.select(flags).names == ("1", "4", "5")
    assert curves.select(torch.from_numpy(flags)).names == ("1", "4", "5")


def test_a_saved_table_answers_as_before(toy, tmp_path):
    pool = toy.make_pool(15, 6, ties=False, empty=3)
    named = CoverageCurves.from_maps(pool.maps, pool.masks, [f"Bild ä {i}" for i in range(18)])
    file = tmp_path / "scores.npz"
    named.save(file)
    back = CoverageCurves.load(file)
    assert back.binned
    same(back, named.to_bins(), toy.plug_in(pool, 0.1))
    assert [p.name for p in tmp_path.iterdir()] == ["scores.npz"]
    back.save(file)
    same(CoverageCurves.load(file), back, toy.plug_in(pool, 0.1))


def test_a_table_with_its_own_edges_survives_the_file(toy, tmp_path):
    pool = toy.make_pool(7, 7, ties=False)
    odd = pool.curves.to_bins(torch.tensor([-15.0, -1.01, 0.3, 2.2, 15.0]))
    odd.save(tmp_path / "odd.npz")
    same(CoverageCurves.load(tmp_path / "odd.npz"), odd, torch.zeros(7))


def test_a_saved_table_is_small(toy, tmp_path):
    pool = toy.make_pool(30, 8, side=64, ties=False)
    pool.curves.save(tmp_path / "small.npz")
    assert (tmp_path / "small.npz").stat().st_size < 30 * 64 * 64 * 4 / 5


@pytest.mark.parametrize("damage", ["other arrays", "no archive", "one array", "cut short"])
def test_a_file_that_is_no_table_is_named(toy, tmp_path, damage):
    file = tmp_path / "wrong.npz"
    if damage == "other arrays":
        np.savez(file, x=np.zeros(3))
    elif damage == "no archive":
        file.write_bytes(b"hello, I am no archive")
    elif damage == "one array":
        with file.open("wb") as f:
            np.save(f, np.zeros(3))
    else:
        toy.make_pool(3, 9).curves.save(file)
        file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(ValueError, match=r"wrong\.npz is not a table of coverage curves"):
        CoverageCurves.load(file)


def test_bad_maps_are_refused_in_words():
    two = [torch.zeros(2, 2), torch.zeros(2, 2)]
    with pytest.raises(ValueError, match=r"Image 0.*\(2, 2\).*\(2, 3\)"):
        CoverageCurves.from_maps([torch.zeros(2, 2)], [torch.zeros(2, 3).bool()])
    with pytest.raises(ValueError, match="NaN"):
        CoverageCurves.from_maps([torch.tensor([[torch.nan]])], [torch.tensor([[True]])])
    with pytest.raises(ValueError, match="no image"):
        CoverageCurves.from_maps([], [])
    with pytest.raises(ValueError):
        CoverageCurves.from_maps(two, [torch.ones(2, 2).bool()])
    with pytest.raises(ValueError, match="2 images and 1 name"):
        CoverageCurves.from_maps(two, [torch.ones(2, 2).bool()] * 2, ["only one"])
