"""A sample for people without maps at hand: drawn pictures scored by the shipped phantom network, packed as we like uploads best.

The pictures are phantoms (nobody's), from seeds that no shipped study uses. The zip shows the layout: `maps/` as 16-bit PNG, `masks/`,
`images/`, and a `groups.csv`.
"""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache

import numpy as np

FIRST_SEED = 870_000

README = """A sample for Plumbline's page "Own data".

maps/    one score map an image: probabilities of your model, here as 16-bit PNG (0 to 65535 is 0 to 1)
masks/   the truth under the same names: 0 is background
images/  optional: what the maps were made of
groups.csv  optional: the first column is the name, each other column a group that is known without the mask

The pictures are drawn by a program, not taken of anybody.
"""


@lru_cache(maxsize=2)
def sample_zip(count: int = 126, size: int = 128) -> bytes:
    """The sample as a zip; made once a process.

    Args:
        count: Pictures; every twentieth has no lesion.
        size: Side in pixels.
    """
    import torch
    from PIL import Image

    from core.data.phantoms import draw
    from core.nets.predict import predict
    from core.nets.weights import shipped_network

    def png(array: np.ndarray) -> bytes:
        file = io.BytesIO()
        Image.fromarray(array).save(file, "PNG", compress_level=4)
        return file.getvalue()

    network, spec, _ = shipped_network("phantom")
    out, lines = io.BytesIO(), ["name,focus,glare"]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("README.txt", README)
        for k in range(count):
            phantom = draw(FIRST_SEED + k, size=size, lesion=k % 20 != 19)
            p = torch.sigmoid(predict(network, phantom.image, spec.side)).numpy()
            name = f"drawn-{k:03d}"
            archive.writestr(f"maps/{name}.png", png(np.rint(65535 * p).astype(np.uint16)))
            archive.writestr(f"masks/{name}.png", png(phantom.mask.astype(np.uint8) * 255))
            archive.writestr(f"images/{name}.png", png(phantom.image))
            focus = "sharp" if phantom.settings.blur < 0.5 else "blurred"
            lines.append(f"{name},{focus},{phantom.settings.glare:.2f}")
        archive.writestr("groups.csv", "\n".join(lines) + "\n")
    return out.getvalue()
