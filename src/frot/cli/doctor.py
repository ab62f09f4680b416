"""``frot doctor``: what is installed, what it runs on, and whether it works."""

from __future__ import annotations

import os
import platform
from importlib import metadata, util
from typing import TYPE_CHECKING, Any

import typer

from frot.cli.command import Exit, Json, Output, Quiet, complain, examples

if TYPE_CHECKING:
    from frot import Result

EXAMPLES = examples("frot doctor", "frot doctor --json")
REQUIRED = ("numpy", "scipy", "POT", "highspy", "typer", "rich")
# What each optional library is for, and how to get it.
OPTIONAL = {
    "matplotlib": ("pictures", '"frot[plot]"'),
    "pandas": ("tables in files, DataFrames", '"frot[tables]"'),
    "pyarrow": (".parquet files", '"frot[tables]"'),
    "openpyxl": (".xlsx files", '"frot[tables]"'),
    "polars": ("DataFrames", "polars"),
    "joblib": ("frot.pairwise over processes", '"frot[parallel]"'),
    "scikit-learn": ("frot.selection, frot select", '"frot[selection]"'),
    "anndata": (".h5ad files", '"frot[anndata]"'),
    "distributed": ("frot.pairwise over a Dask cluster", '"frot[dask]"'),
    "torch": ("tensors on CPU and GPU, frot.torch.FRWDLoss", '"frot[torch]"'),
    "onnxruntime": ("networks in ONNX files", '"frot[correspondence]"'),
    "transformers": ("networks such as DINOv2, DINOv3 and CLIP", '"frot[transformers]"'),
    "triton": ("kernels on CUDA devices", '"frot[cuda]"'),
}


def doctor(json: Json = False, quiet: Quiet = False) -> None:
    """Check the installation: versions, threads, GPU, and a small solve."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = Output(json, quiet)
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    rows = [
        ("frot", metadata.version("frot")),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        *((name, _installed(name) or "missing") for name in REQUIRED),
        *((name, _optional(name)) for name in OPTIONAL),
        ("networks", _networks()),
        ("BLAS", _blas()),
        ("threads", _threads()),
        ("GPU", _gpu()),
    ]
    for name, text in rows:
        # As text, so that the brackets of an extra's name are not read as markup.
        table.add_row(name, Text(text))
    out.console().print(table)
    ours, referee, works = _self_test()
    out.say(
        f"Self-test: optimum in [{ours.lower:.12g}, {ours.upper:.12g}], gap {ours.gap:.1e}, "
        f"{ours.time:.2f} s; linear program {referee.value:.12g}"
    )
    versions = {name: _installed(name) for name in (*REQUIRED, *OPTIONAL)}
    out.numbers(
        {
            **{name: text for name, text in rows if name not in versions},
            "packages": versions,
            "self_test": {
                "works": works,
                **{name: getattr(ours, name) for name in ("lower", "upper", "gap", "time")},
                "linear_program": referee.value,
            },
        }
    )
    if not works:
        complain("the self-test failed: the exact solver and the linear program disagree")
        raise typer.Exit(Exit.FAILED)
    out.say("Everything works.", style="green")


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _optional(name: str) -> str:
    purpose, requirement = OPTIONAL[name]
    version = _installed(name)
    return (
        f"{version} ({purpose})"
        if version
        else f"not installed ({purpose}: pip install {requirement})"
    )


def _networks() -> str:
    """Say which networks `frot match` can use here, and which it lacks a library for."""
    from frot.correspondence.backbones import FORMS

    usable, lacking = [], []
    for names, needs in FORMS.items():
        absent = [name for name in needs if util.find_spec(name) is None]
        if absent:
            lacking.append(f"{names} (needs {', '.join(absent)})")
        else:
            usable.append(names)
    text = "; ".join(usable) or "none"
    return f"{text}; not {'; '.join(lacking)}" if lacking else text


def _blas() -> str:
    import numpy

    config: Any = numpy.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _threads() -> str:
    affinity = getattr(os, "sched_getaffinity", None)
    usable = len(affinity(0)) if affinity is not None else os.cpu_count()
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    limits = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    return f"{usable} usable of {os.cpu_count()} cores; " + (", ".join(limits) or "no limits set")


def _gpu() -> str:
    if util.find_spec("torch") is None:
        return "unknown: torch is not installed"
    import torch  # pyright: ignore[reportMissingImports]

    if not torch.cuda.is_available():
        return "none that torch can use"
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    kernels = "Triton kernels" if util.find_spec("triton") else "plain PyTorch, no Triton"
    return f"{', '.join(names)} ({kernels})"


def _self_test() -> tuple[Result, Result, bool]:
    """Solve a small problem twice; whether the two agree."""
    import frot
    from frot.datasets import toy

    X, Y, groups = toy(40)
    ours = frot.solve(X, Y, groups)
    referee = frot.solve(X, Y, groups, solver="linear_program")
    slack = 1e-6 * abs(referee.value)
    works = ours.status.ok and ours.lower - slack <= referee.value <= ours.upper + slack
    return ours, referee, works
