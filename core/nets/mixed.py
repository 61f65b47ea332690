"""bfloat16 layers at a bearable speed on every processor.

Processors without instructions for bfloat16 only imitate it: a training step then takes ten times as long as in float32. Where that is so, the
layers that cost the time take operands rounded to bfloat16, multiply and sum in float32, and round the result: the same arithmetic up to
the order of the sums, because the product of two bfloat16 numbers is exact in float32. A run that began on one kind of processor can go on
on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

HEAVY = frozenset(
    {torch.conv2d, F.conv2d, torch.conv_transpose2d, F.conv_transpose2d, F.linear}
    | {F.scaled_dot_product_attention}
)
"""The functions that are worth it: those that multiply many numbers."""


def imitates_bfloat16(device: torch.device | str) -> bool:
    """Whether convolutions in bfloat16 are an imitation there: on a CPU for which oneDNN has no kernel of them."""
    if torch.device(device).type != "cpu":
        return False
    try:
        return not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    except (AttributeError, RuntimeError):  # a build without oneDNN
        return True


def _rounded(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.bfloat16().float()
    return value


def _elsewhere(values: Iterable[Any]) -> bool:
    return any(isinstance(v, torch.Tensor) and v.device.type != "cpu" for v in values)


class Float32Kernels(TorchFunctionMode):
    """Inside it, layers that autocast would run in bfloat16 on the CPU take rounded operands and compute in float32.

    Gradients are rounded to bfloat16 on their way back, as they are under autocast. Where autocast is off, nothing changes.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one function of torch; the heavy ones under autocast on the CPU with rounded operands."""
        kwargs = kwargs or {}
        if func not in HEAVY or not torch.is_autocast_enabled("cpu") or _elsewhere((*args, *kwargs.values())):
            return func(*args, **kwargs)
        with torch.autocast("cpu", enabled=False):
            out = func(*(_rounded(a) for a in args), **{k: _rounded(v) for k, v in kwargs.items()})
        return out.bfloat16()


@contextmanager
def mixed(device: torch.device | str, on: bool = True) -> Iterator[None]:
    """bfloat16 autocast for the layers of a network, fast on processors that only imitate it.

    Args:
        device: Where the network runs. On `"mps"` nothing is done.
        on: False does nothing.

    The backward pass may lie outside, as with `torch.autocast`.
    """
    kind = torch.device(device).type
    with ExitStack() as stack:
        if on and kind != "mps":
            stack.enter_context(torch.autocast(kind, torch.bfloat16))
            if imitates_bfloat16(device):
                stack.enter_context(Float32Kernels())
        yield
