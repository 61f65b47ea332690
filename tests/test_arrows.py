"""Arrows point down: pages → core.lab → figures and method rooms → data, nets, images → settings.

Read from the source with `ast`, so that an import inside a function counts as much as one at the top.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEVEL = {
    "core.settings": 0,
    "core.images": 1,
    "core.data": 1,
    "core.nets": 1,
    "core.figures": 2,
    "core.conformal": 2,
    "core.coat": 2,
    "core.margin": 2,
    "core.car": 2,
    "core.tacsc": 2,
    "core.lab": 3,
    "core.__main__": 4,
    "benchmarks": 4,
    "pages": 4,
    "app": 5,
}
SIDEWAYS = {  # neighbours on one level that may know each other, in this direction only
    ("core.coat", "core.conformal"),
    ("core.data", "core.images"),
    ("core.nets", "core.images"),
}
INTERFACES = {"streamlit", "gradio", "gradio_client", "streamlit_extras"}
CHARTS = {"altair", "plotly"}


def room_of(module: str) -> str | None:
    """The room that a module of ours lives in, "core" for the package itself, None for other people's modules."""
    parts = module.split(".")
    if parts[0] == "core":
        return ".".join(parts[:2])
    return parts[0] if parts[0] in ("pages", "benchmarks", "app") else None


def imports_of(path: Path, module: str) -> list[tuple[int, str]]:
    """Line and full name of everything that a file imports, relative and deferred imports and `import_module` included."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base]).strip(".")
            # `from core import lab` imports core.lab; `from core.lab import runner` may be a module or a name: same room
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.append((node.lineno, node.args[0].value))
    return found


def sources(root: Path) -> list[tuple[Path, str]]:
    """Every source file of the house with its module name."""
    files = [
        *root.glob("app.py"),
        *(f for top in ("core", "pages", "benchmarks") for f in sorted((root / top).rglob("*.py"))),
    ]
    return [
        (file, ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
        for file in files
    ]


def broken_arrows(root: Path) -> list[str]:
    """Say of every import that points up, sideways or out of the house where it is and why it may not be."""
    complaints = []
    for path, module in sources(root):
        room = room_of(module)
        for line, name in imports_of(path, module):
            where = f"{path.relative_to(root)}:{line} imports {name}"
            top, target = name.split(".")[0], room_of(name)
            if top in INTERFACES and module.split(".")[0] == "core":
                complaints.append(f"{where}: core knows no user interface")
            elif top in CHARTS and module.split(".")[0] == "core" and room != "core.figures":
                complaints.append(f"{where}: charts live in core.figures")
            elif target not in (None, room, "core") and room is not None:
                if target not in LEVEL or room not in LEVEL:
                    if room != "core":
                        complaints.append(
                            f"{where}: {target if target not in LEVEL else room} has no place in LEVEL"
                        )
                    else:
                        complaints.append(f"{where}: the package itself imports nothing of ours")
                elif LEVEL[target] >= LEVEL[room] and (room, target) not in SIDEWAYS:
                    complaints.append(f"{where}: {room} may not know {target}")
    return complaints


def test_every_arrow_in_this_house_points_down():
    assert len(sources(ROOT)) > 10
    assert broken_arrows(ROOT) == []


BAD = {
    "a method room that knows the lab": ("core/coat/a.py", "from core.lab import study\n"),
    "settings that know a room": ("core/settings/knob.py", "import core.images.read\n"),
    "two methods that know each other": ("core/margin/a.py", "from core.car.spectrum import bound\n"),
    "coat's foundation that knows coat": ("core/conformal/a.py", "from core import coat\n"),
    "images that know data": ("core/images/a.py", "import core.data.folders as f\n"),
    "a figure that knows a method": ("core/figures/a.py", "from core.conformal import curves\n"),
    "a method that draws": ("core/conformal/a.py", "from core.figures.strips import strip\n"),
    "core that knows a page": ("core/lab/a.py", "from pages import header\n"),
    "core that knows Streamlit": ("core/lab/a.py", "import streamlit as st\n"),
    "core that knows Gradio, deferred": ("core/lab/a.py", "def f():\n    from gradio import Blocks\n"),
    "a chart outside the figures": ("core/lab/a.py", "def f():\n    import plotly.graph_objects as go\n"),
    "a page that knows the launcher": ("pages/a.py", "from app import app\n"),
    "a relative way up": ("core/coat/a.py", "from ..lab import study\n"),
    "a relative way up from a package": ("core/coat/__init__.py", "from ..lab import study\n"),
    "a hidden import": ("core/coat/a.py", "import importlib\nimportlib.import_module('core.lab.study')\n"),
    "a package that imports its rooms": ("core/__init__.py", "from core.lab import jobs\n"),
    "a room that nobody placed": ("core/newroom/a.py", "from core.settings import knob\n"),
}


@pytest.mark.parametrize("what", BAD)
def test_the_check_catches(what, tmp_path):
    name, source = BAD[what]
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(source)
    (complaint,) = broken_arrows(tmp_path)
    assert name in complaint


def test_the_check_lets_everything_through_that_points_down(tmp_path):
    good = {
        "app.py": "import streamlit\nfrom pages.embed import Embed\nimport core.nets.build\n",
        "pages/a.py": "import streamlit\nfrom pages import header\nfrom core.lab import jobs\nfrom core.figures import strips\n",
        "core/lab/a.py": "from core.lab import jobs\nfrom core.coat import fit\nfrom . import b\nimport core\n",
        "core/coat/a.py": "from core.conformal import curves\nfrom core.nets import build\nfrom .b import c\nimport torch\n",
        "core/figures/a.py": "import altair\nfrom core.images.display import to_display\n",
        "core/data/a.py": "from core.images import read\nfrom core.settings import knob\n",
    }
    for name, source in good.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    assert broken_arrows(tmp_path) == []
