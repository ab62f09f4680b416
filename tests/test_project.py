import ast
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import frot

# Python 3.10 has none of its own, and pytest brings one there.
tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ["torch", "matplotlib", "jinja2", "sklearn", "pandas", "polars", "pyarrow", "joblib"]
HEAVY += ["dask", "ot", "jax", "highspy", "rich", "typer", "PIL", "scipy.optimize", "scipy.stats"]
HEAVY += ["scipy.sparse.linalg", "scipy.cluster", "scipy.spatial", "scipy.special"]
HEAVY += ["multiprocessing"]

# Modules that `import frot` may load besides those that NumPy and SciPy's parts load by
# themselves: its own, and a few of the standard library's. Modules are counted because a clock
# tells more about the machine and who else is on it.
MODULES = 215
PARTS = ["numpy", "scipy.linalg", "scipy.sparse"]


def loaded_by(code: str) -> set[str]:
    """Return the modules there are in a new process once it has run `code`."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_import_loads_few_modules_and_no_heavy_library():
    loaded = loaded_by("import frot")
    assert loaded.isdisjoint(HEAVY)
    own = loaded - loaded_by(f"import {', '.join(PARTS)}")
    assert len(own) < MODULES, sorted(own)


def test_transport_loads_none_of_pots_libraries():
    """POT's package loads PyTorch and JAX where they are installed, which takes seconds."""
    calls = """
import numpy as np, frot
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 12, 3))
frot.solve(X, Y)
frot.solve(X, Y, eta=0.1, solver="frank_wolfe")
frot.solve(X, Y, normalise="regret")
frot.solve(X, Y, eps=0.5)
frot.wasserstein(X, Y)
frot.sliced(X, Y, a=np.arange(1.0, 13.0), normalise_weights=True)
frot.distance(X, Y)
frot.pairwise([X, Y], "all")
"""
    assert loaded_by(calls).isdisjoint({"ot", "torch", "jax", "tensorflow", "cupy"})


def test_version_is_the_same_everywhere():
    assert frot.__version__ == importlib.metadata.version("frot")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {frot.__version__}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.+?)\]", changes, re.M)[0] == frot.__version__


def test_package_is_typed():
    assert (ROOT / "src" / "frot" / "py.typed").is_file()


def pins(name: str) -> dict[str, set[str]]:
    """Return the versions that a file of constraints has of each package."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        assert re.match(r"^[a-z0-9-]+==[^;\s]+(; python_version [<>=]+ \"3\.1[14]\")?$", line)
        found.setdefault(line.partition("==")[0], set()).add(line.partition("==")[2])
    return found


def test_constraints_pin_every_dependency_exactly():
    main, cells = pins("constraints.txt"), pins("constraints-anndata.txt")
    for extra in EXTRAS:
        pinned = cells if extra == "test-anndata" else main
        assert closure(extra) <= pinned.keys(), extra
    # The two environments differ in pandas, and in what only one of them needs.
    versions = {name: {pin.partition(";")[0] for pin in found} for name, found in main.items()}
    other = {
        name
        for name, found in cells.items()
        if name in main and {pin.partition(";")[0] for pin in found} - versions[name]
    }
    assert other <= {"pandas"}


def extras() -> dict[str, list[str]]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["optional-dependencies"]


EXTRAS = extras()


def closure(extra: str) -> set[str]:
    """Return the packages that an extra names, through the extras that it names."""
    found = set()
    for line in EXTRAS[extra]:
        found_in = re.match(r"([\w.-]+)(?:\[(.*?)\])?", line)
        assert found_in is not None
        name, more = found_in.groups()
        if name == "frot":
            found |= set().union(*map(closure, more.split(",")))
        else:
            found.add(re.sub(r"[-_.]+", "-", name).lower())
    return found


def required() -> Iterator[tuple[str, str]]:
    """Yield the package and the extra of every ``require("package.module", "extra")``."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
                module, extra = (ast.literal_eval(argument) for argument in node.args)
                yield module.partition(".")[0], extra


def test_extras_bring_what_the_code_asks_them_for():
    owners = importlib.metadata.packages_distributions()
    for package, extra in set(required()):
        named = closure(extra)
        # Old files of scikit-learn do not say what they bring.
        known = {"sklearn": "scikit-learn"}
        wanted = {name.lower() for name in owners.get(package, [known.get(package, package)])}
        through = set()
        for name in named:
            try:
                lines = importlib.metadata.requires(name) or []
            except importlib.metadata.PackageNotFoundError:
                continue
            through |= {re.split(r"[^\w.-]", line)[0].lower() for line in lines}
        assert wanted & (named | through), f"{package} is not in frot[{extra}]"


def test_all_is_all():
    """But for what needs a device, compares with others, or tests."""
    apart = {"all", "cuda", "bench", "docs", "test", "test-anndata"}
    assert closure("all") == set().union(*(closure(extra) for extra in EXTRAS.keys() - apart))


# Packages whose modules are called otherwise.
MODULES_OF = {"scikit-learn": "sklearn", "scikit-image": "skimage", "pot": "ot"}


def imported(source: str) -> set[str]:
    """Return the packages that a script needs; those within ``if`` or ``try`` it can do without."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"frot"}


def brought_by(extras: set[str]) -> set[str]:
    """Return the modules that frot with some extras brings."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    core = {
        re.split(r"[^\w.-]", line)[0].lower()
        for line in tomllib.loads(text)["project"]["dependencies"]
    }
    return {MODULES_OF.get(name, name) for name in core.union(*map(closure, extras))}


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_the_extras_of_what_they_import(page):
    text = page.read_text(encoding="utf-8")
    needed = imported("\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)))
    named = {
        extra for found in re.findall(r"frot\[([\w,-]+)\]", text) for extra in found.split(",")
    }
    assert needed <= brought_by(named & EXTRAS.keys())


def test_the_gallery_imports_what_its_extra_brings():
    scripts = list((ROOT / "examples").glob("*/*.py"))
    needed = set().union(*(imported(path.read_text(encoding="utf-8")) for path in scripts))
    assert "skimage" in needed
    assert needed <= brought_by({"examples"})
    assert "frot[examples]" in (ROOT / "examples" / "README.rst").read_text(encoding="utf-8")
