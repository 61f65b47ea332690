"""`python -m benchmarks NAME [options] [--quick] [--json FILE]`: run one benchmark, print its table, write its JSON.

What is measured stands in the module of that name; this file only finds it, adds the common keys and writes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import BENCHMARKS
from benchmarks.table import show, summary

COMMON = ("name", "device", "versions", "settings", "rows", "seconds")
PACKAGES = ("torch", "numpy", "mapie", "streamlit", "gradio", "segmentation-models-pytorch")


def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that figures may depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def device_name() -> str:
    """The device in words, with the processor's name where the system tells it."""
    from core.nets.build import device_line

    line = device_line()
    cpu = Path("/proc/cpuinfo")
    names = (
        [row.split(":", 1)[1].strip() for row in cpu.read_text().splitlines() if row.startswith("model name")]
        if cpu.exists()
        else []
    )
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{line}; {name}"


def plain(value: Any) -> Any:
    """A value as JSON knows it: arrays become lists, a path its last name, NaN and infinity None."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return value.name
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def parser_of(name: str) -> tuple[argparse.ArgumentParser, Any]:
    """The parser of one benchmark and its module.

    Raises:
        ModuleNotFoundError: The module itself is not there (a missing library of its own is not caught).
    """
    module = importlib.import_module(BENCHMARKS[name])
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}", description=(module.__doc__ or "").strip().splitlines()[0]
    )
    module.add_arguments(parser)
    parser.add_argument(
        "--quick", action="store_true", help="a smaller run that ends within 40 s on two cores"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file as JSON")
    return parser, module


def measure(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run one benchmark and give its figures with the common keys.

    Args:
        name: A key of `BENCHMARKS`.
        arguments: Its options as on the command line, `--json` among them (written here).
    """
    parser, module = parser_of(name)
    args = parser.parse_args(arguments)
    if args.json is not None and not args.json.parent.is_dir():
        parser.error(f"--json {args.json}: the folder {args.json.parent} does not exist. Make it first.")
    began = time.perf_counter()
    figures = module.run(args)
    settings = {key: value for key, value in vars(args).items() if key != "json"} | figures.pop(
        "settings", {}
    )
    result = {
        "name": name,
        "device": figures.pop("device", None) or device_name(),
        "versions": versions(),
        "settings": settings,
        "rows": figures.pop("rows"),
        **figures,
        "seconds": round(time.perf_counter() - began, 2),
    }
    result = plain(result)
    if args.json is not None:
        part = args.json.with_name(args.json.name + ".part")
        part.write_text(
            json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
        )
        os.replace(part, args.json)
    if hasattr(module, "record"):
        module.record(result, args)
    return result


def _show_rows(result: dict[str, Any]) -> None:
    show(result["rows"])


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(
            "python -m benchmarks NAME [options] [--quick] [--json FILE]\n\nNAME is one of: "
            + ", ".join(BENCHMARKS)
        )
        print("python -m benchmarks NAME --help lists the options of one.")
        return 0 if arguments else 2
    name = arguments[0]
    if name not in BENCHMARKS:
        print(f"There is no benchmark {name!r}. Known: {', '.join(BENCHMARKS)}.", file=sys.stderr)
        return 2
    try:
        result = measure(name, arguments[1:])
    except ModuleNotFoundError as error:
        lacking = (
            "requirements-dev.txt brings it"
            if error.name != BENCHMARKS[name]
            else "this checkout does not hold it"
        )
        print(f"The benchmark {name!r} needs the module {error.name!r}: {lacking}.", file=sys.stderr)
        return 1
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{name}, on {result['device']}\n")
    getattr(parser_of(name)[1], "show_result", _show_rows)(result)
    figures = {
        key: value
        for key, value in result.items()
        if key not in COMMON and not isinstance(value, (dict, list))
    }
    print("\n" + summary(figures | {"seconds": result["seconds"]}))
    if "--json" in arguments or any(a.startswith("--json=") for a in arguments):
        print("\nWritten as JSON.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
