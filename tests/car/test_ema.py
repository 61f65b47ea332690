"""The running matrix: what each memory remembers of a class that batches lack, against formulas, closed forms and a long simulation."""

from __future__ import annotations

import pytest
import torch

from core.car.ema import Memory, correction, presence, remember, replay
from core.data.longtail import longtail_counts


def flows(n: int, k: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(n, k, generator=rng, dtype=torch.float64), torch.randint(k, (n,), generator=rng)


def column_means(flow: torch.Tensor, labels: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.zeros(k, k, dtype=torch.float64)
    for j in labels.unique():
        out[:, j] = flow[labels == j].mean(0)
    return out


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
def test_the_naive_memory_is_the_papers_formula(beta: float) -> None:
    memory, want = (
        Memory.empty(5, torch.zeros((), dtype=torch.float64)),
        torch.zeros(5, 5, dtype=torch.float64),
    )
    for step in range(6):
        flow, labels = flows(4, 5, step)
        remember(memory, flow, labels, "naive", beta)
        want = beta * want + (1 - beta) * column_means(flow, labels, 5)
        torch.testing.assert_close(memory.confusion, want)


def test_present_only_leaves_a_missing_class_as_it_was() -> None:
    memory = Memory.empty(3, torch.zeros((), dtype=torch.float64))
    flow, _ = flows(3, 3, 0)
    remember(memory, flow, torch.tensor([0, 1, 2]), "present only", 0.5)
    before = memory.confusion.clone()
    remember(memory, flow, torch.tensor([0, 0, 1]), "present only", 0.5)
    assert torch.equal(memory.confusion[:, 2], before[:, 2])
    torch.testing.assert_close(memory.confusion[:, 0], 0.5 * before[:, 0] + 0.5 * flow[:2].mean(0))


@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
def test_the_count_memory_is_a_ratio_of_two_running_sums(beta: float) -> None:
    memory = Memory.empty(4, torch.zeros((), dtype=torch.float64))
    errors, samples = torch.zeros(4, 4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    for step in range(8):
        flow, labels = flows(12, 4, step)
        remember(memory, flow, labels, "count", beta)
        counts = torch.bincount(labels, minlength=4)
        errors = beta * errors + (1 - beta) * column_means(flow, labels, 4) * counts
        samples = beta * samples + (1 - beta) * counts
        torch.testing.assert_close(memory.confusion, errors / samples)


def test_the_count_memory_outlives_a_long_absence() -> None:
    memory = Memory.empty(2)
    remember(memory, torch.tensor([[0.0, 0.4]]), torch.tensor([0]), "count", 0.5)
    for _ in range(400):  # 0.5^400 is below the smallest float32
        remember(memory, torch.tensor([[0.3, 0.0]]), torch.tensor([1]), "count", 0.5)
    assert memory.confusion[1, 0].item() == pytest.approx(0.4)
    remember(memory, torch.tensor([[0.0, 0.8]]), torch.tensor([0]), "count", 0.5)
    assert memory.confusion[1, 0].item() == pytest.approx(0.8)
    assert bool(torch.isfinite(memory.columns).all())


def test_what_a_sample_counts_is_the_slope_of_the_matrix() -> None:
    for mode in ("naive", "present only", "count"):
        flow, labels = flows(6, 4, 3)
        first = flows(6, 4, 4)
        ends = []
        for nudge in (0.0, 1e-3):
            memory = Memory.empty(4, flow)
            remember(memory, *first, mode, 0.7)
            moved = flow.clone()
            moved[2, 1] += nudge
            each = remember(memory, moved, labels, mode, 0.7)
            ends.append(memory.confusion[1, labels[2]].item())
        assert (ends[1] - ends[0]) / 1e-3 == pytest.approx(each[labels[2]].item())
        absent = [j for j in range(4) if j not in labels.tolist()]
        assert all(each[j] == 0 for j in absent)


def test_corrected_first_steps_have_the_right_size() -> None:
    flow, labels = torch.tensor([[0.0, 0.25], [0.5, 0.0]]), torch.tensor([0, 1])
    for mode in ("naive", "present only", "count"):
        memory = Memory.empty(2)
        for _ in range(3):
            remember(memory, flow, labels, mode, 0.9)
            corrected = memory.confusion / correction(memory, mode, 0.9)
            torch.testing.assert_close(corrected, flow.T)
    naive = Memory.empty(2)
    remember(naive, flow, labels, "naive", 0.9)
    assert naive.confusion[1, 0].item() == pytest.approx(0.025)  # without correction it is (1 - beta) of it


def test_the_naive_memory_forgets_the_tail_as_much_as_the_notes_say() -> None:
    counts = torch.from_numpy(longtail_counts(100, 500, 100))
    there = presence(counts, 128)
    assert there[0].item() == pytest.approx(0.998, abs=1e-3)
    assert there[-1].item() == pytest.approx(0.057, abs=1e-3)
    assert there.sum().item() == pytest.approx(49.6, abs=0.1)


@pytest.mark.parametrize("beta", [0.5, 0.9])
def test_only_the_count_memory_has_no_bias(beta: float) -> None:
    share = torch.tensor([0.9, 0.06, 0.04], dtype=torch.float64)
    truth = torch.tensor([[0.0, 0.2, 0.6], [0.1, 0.0, 0.3], [0.3, 0.5, 0.0]], dtype=torch.float64)
    rng = torch.Generator().manual_seed(5)
    memories = {mode: Memory.empty(3, truth) for mode in ("naive", "present only", "count")}
    sums = dict.fromkeys(memories, torch.zeros(3, 3, dtype=torch.float64))
    steps = 1500
    for step in range(steps + 50):
        labels = torch.multinomial(share, 8, replacement=True, generator=rng)
        for mode, memory in memories.items():
            remember(memory, truth.T[labels], labels, mode, beta)
            if step >= 50:
                sums[mode] = sums[mode] + memory.confusion / steps
    there = presence(share * 1000, 8)
    assert there[2] < 0.3
    torch.testing.assert_close(sums["naive"], truth * there, atol=0.03, rtol=0.05)
    for mode in ("present only", "count"):
        torch.testing.assert_close(sums[mode], truth, atol=0.02, rtol=0.02)


def test_replaying_batches_gives_what_remembering_them_gave() -> None:
    matrices, counts = [], []
    memory = Memory.empty(4, torch.zeros((), dtype=torch.float64))
    for step in range(5):
        flow, labels = flows(7, 4, step)
        remember(memory, flow, labels, "count", 0.6)
        matrices.append(column_means(flow, labels, 4))
        counts.append(torch.bincount(labels, minlength=4))
    played = replay(torch.stack(matrices), torch.stack(counts), "count", 0.6)
    assert played.shape == (5, 4, 4)
    torch.testing.assert_close(played[-1], memory.confusion)
    torch.testing.assert_close(played[0], matrices[0])
    corrected = replay(torch.stack(matrices), torch.stack(counts), "naive", 0.6, bias_correction=True)
    torch.testing.assert_close(corrected[0], matrices[0])


def test_what_is_not_known_is_refused() -> None:
    flow, labels = flows(2, 2, 0)
    with pytest.raises(ValueError, match="naive, present only, count"):
        remember(Memory.empty(2), flow, labels, "eternal", 0.5)
    with pytest.raises(ValueError, match="beta is 1"):
        remember(Memory.empty(2), flow, labels, "naive", 1.0)
