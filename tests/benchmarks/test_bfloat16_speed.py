"""The three ways of a training step are the ones that their names say; no time is tested."""

from __future__ import annotations

import torch

from benchmarks.__main__ import measure
from benchmarks.bfloat16_speed import WAYS, apart, once
from core.nets.resnet_cifar import resnet_cifar


def test_each_way_is_the_one_that_its_name_says():
    net = resnet_cifar(4, torch.Generator().manual_seed(0), 8, 8, "linear")
    rng = torch.Generator().manual_seed(1)
    x, y = torch.randn(16, 3, 16, 16, generator=rng), torch.randint(0, 4, (16,), generator=rng)
    found = {name: once(net, x, y, way)[1:] for name, way in WAYS.items()}
    away = {name: apart(gradients, found["autocast"][1]) for name, (_, gradients) in found.items()}
    assert away["autocast"] == 0
    assert 0 < away["float32"] < 0.5 and away["float32 sums"] < 0.5
    kinds = {}
    for name, way in WAYS.items():
        with way():
            kinds[name] = torch.nn.functional.linear(x.flatten(1), x.flatten(1)).dtype
    assert kinds == {"float32": torch.float32, "autocast": torch.bfloat16, "float32 sums": torch.bfloat16}


def test_it_runs_and_leaves_the_threads_as_they_were():
    threads = torch.get_num_threads()
    result = measure("bfloat16_speed", ["--quick", "--batch", "2"])
    assert torch.get_num_threads() == threads
    assert [r["way"] for r in result["rows"]] == list(WAYS)
    assert result["rows"][1]["logits_apart"] == 0
    assert result["ratio_float32_sums"] > 0 and isinstance(result["imitates_bfloat16"], bool)
