"""Base networks by name, with K = 2 logits, and the device that they run on.

A `Spec` is all that is needed to rebuild a network before its weights are loaded; it travels inside the
weights file. The layers come from segmentation-models-pytorch, imported only when a network is built.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn

CLAMP = 15.0
"""Binary scores l1 - l0 are clamped to plus or minus this many logits."""


@dataclass(frozen=True)
class Spec:
    """What rebuilds a network.

    Attributes:
        kind: One of `KINDS`.
        encoder: Encoder name of segmentation-models-pytorch.
        decoder: Channels of the decoder, coarse to fine; see `build` for each kind.
        side: Side of the square that it was trained on, in pixels.
        classes: K, the number of logits.
    """

    kind: str = "unet"
    encoder: str = "mobilenet_v2"
    decoder: tuple[int, ...] = (96, 64, 48, 32, 16)
    side: int = 192
    classes: int = 2

    def to_dict(self) -> dict[str, object]:
        """The specification as plain values."""
        return asdict(self)


SPECS = {
    "polyp": Spec(),
    "phantom": Spec(decoder=(64, 48, 32, 24, 16), side=128),
}


KINDS = ("unet", "deeplab", "pspnet", "sinet")
"""Base networks of the studies. `build` knows one more, `"slim"`: the small U-Net that losses are compared on."""


def build(spec: Spec) -> nn.Module:
    """Build a network with fresh weights.

    `decoder` holds the decoder's channels: five (or four) of the U-Net's stages, one number for DeepLab v3+ and for PSPNet, and
    for SINet its width and its decoders' channels (SINet has a backbone of its own and ignores `encoder`). The slim U-Net is MONAI's
    `BasicUNet`; its six channels are those of its stages, and its last layer stays in float32 under autocast.

    Raises:
        ValueError: The kind is not known.
    """
    if spec.kind == "slim":
        from core.nets.slim import slim_unet

        return slim_unet(spec.decoder, spec.classes)
    if spec.kind not in KINDS:
        known = ", ".join(map(repr, (*KINDS, "slim")))
        raise ValueError(f"The network kind {spec.kind!r} is not known here; known: {known}.")
    if spec.kind == "sinet":
        from core.nets.sinet import SINet

        return SINet(spec.decoder[0], spec.decoder[1])
    import segmentation_models_pytorch as smp

    if spec.kind == "deeplab":
        return smp.DeepLabV3Plus(
            spec.encoder, encoder_weights=None, decoder_channels=spec.decoder[0], classes=spec.classes
        )
    if spec.kind == "pspnet":
        return smp.PSPNet(
            spec.encoder, encoder_weights=None, psp_out_channels=spec.decoder[0], classes=spec.classes
        )
    return smp.Unet(
        spec.encoder,
        encoder_depth=len(spec.decoder),
        encoder_weights=None,
        decoder_channels=tuple(spec.decoder),
        classes=spec.classes,
    )


def initialise(model: nn.Module, rng: torch.Generator) -> nn.Module:
    """Draw fresh weights from a generator, so that a training run owes nothing to the process's global state.

    Kernels and matrices are He-normal by fan-out, biases zero, normalisation scales one.

    Returns:
        The same network.
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2:
            nn.init.kaiming_normal_(parameter, mode="fan_out", nonlinearity="relu", generator=rng)
        else:
            nn.init.constant_(parameter, 1.0 if name.endswith("weight") else 0.0)
    return model


def best_device() -> torch.device:
    """CUDA, else Apple's MPS, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def device_line() -> str:
    """The device in words, for the header of a page."""
    device = best_device()
    if device.type == "cuda":
        return f"GPU: {torch.cuda.get_device_name(0)}"
    if device.type == "mps":
        return "GPU: Apple Metal"
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'' if threads == 1 else 's'}"


def binary_score(logits: torch.Tensor) -> torch.Tensor:
    """Score of the foreground from two logits.

    Args:
        logits: `(N, 2, H, W)`.

    Returns:
        `(N, H, W)` float32, l1 - l0 clamped to plus or minus 15: the logit of the foreground's probability.

    Raises:
        ValueError: Not two logits.
    """
    if logits.ndim != 4 or logits.shape[1] != 2:
        raise ValueError(f"A binary score needs logits of shape (N, 2, H, W), not {tuple(logits.shape)}.")
    return (logits[:, 1].float() - logits[:, 0].float()).clamp(-CLAMP, CLAMP)
