"""The package's own rules: imports go downward, heavy ones stay where they belong, no print."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

import perfmodel

PACKAGE = Path(perfmodel.__file__).parent
FIGURES = PACKAGE / "figures" if (PACKAGE / "figures").is_dir() else PACKAGE.parent / "figures"

#: A module may import those before it, and its own folder.
ORDER = (
    "units", "checks", "toml_text", "files", "resources", "equations", "problems", "workloads",
    "devices", "device_files", "gpu", "npu", "measurements", "selection", "live", "studies",
    "plotting", "figures", "cli", "__main__",
)

#: Where a heavy dependency may be imported at all.
HOMES = {
    "statsmodels": {"selection"},
    "matplotlib": {"plotting", "figures"},
    "torch": {"live"},
    "triton": {"live"},
}

OPTIONAL = {"torch", "triton", "dask", "cupy"}

#: Modules that are nothing without a GPU: imported only once one was found.
ON_A_GPU = {
    "compiler", "graphs", "operands", "probe", "probe_kernels", "runner", "triton_gemm",
}
EQUATIONS_KNOW = {"numpy", "math", "perfmodel"}


def _modules():
    sources = [(path, path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")]
    if FIGURES.parent != PACKAGE:
        sources += [(path, "figures" / path.relative_to(FIGURES)) for path in FIGURES.rglob("*.py")]
    parts = {path: list(Path(inside).with_suffix("").parts) for path, inside in sources}
    kept = {path: names for path, names in parts.items() if names[0] not in ("data", "__init__")}
    return sorted(kept.items())


MODULES = _modules()
IDS = [".".join(names) for _, names in MODULES]


def _imports(path, names):
    """Full names of the modules a file imports, each with whether it does so when imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in at_top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ["perfmodel", *names][: -node.level] if node.level else []
            base = [*package, *(node.module or "").split(".")]
            base = [part for part in base if part]
            if base == ["perfmodel"]:
                yield from ((f"perfmodel.{a.name}", id(node) in at_top) for a in node.names)
            else:
                yield ".".join(base), id(node) in at_top


@pytest.mark.parametrize(("path", "names"), MODULES, ids=IDS)
def test_imports_go_downward(path, names):
    assert names[0] in ORDER, "give the new module its place in ORDER"
    for imported, _ in _imports(path, names):
        if imported.startswith("perfmodel."):
            unit = imported.split(".")[1]
            below = unit in ORDER[: ORDER.index(names[0]) + 1] or unit == "__version__"
            assert below, f"{'.'.join(names)} imports {imported}, which is above it"


@pytest.mark.parametrize(("path", "names"), MODULES, ids=IDS)
def test_heavy_dependencies_stay_where_they_belong(path, names):
    for imported, at_top in _imports(path, names):
        root = imported.split(".")[0]
        assert names[0] in HOMES.get(root, {names[0]}), f"{root} does not belong here"
        allowed = names[0] == "live" and names[-1] in ON_A_GPU
        assert allowed or not (at_top and root in OPTIONAL), (
            f"{root} is optional: import it where it is used")
        needs_gpu = imported.startswith("perfmodel.live.") and imported.split(".")[2] in ON_A_GPU
        assert allowed or not (at_top and needs_gpu), f"{imported} needs torch: import it inside"


@pytest.mark.parametrize(
    ("path", "names"), [item for item in MODULES if item[1][0] == "equations"]
)
def test_equations_know_arrays_and_nothing_else(path, names):
    for imported, _ in _imports(path, names):
        root, *rest = imported.split(".")
        assert root in EQUATIONS_KNOW, f"an equation imports {imported}"
        assert not rest or root != "perfmodel" or rest[0] in ("equations", "units")


@pytest.mark.parametrize(("path", "names"), MODULES, ids=IDS)
def test_no_print_assert_or_passed_on_keywords(path, names):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not isinstance(node, ast.Assert), f"assert in line {node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"print in line {node.lineno}"
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            assert node.args.kwarg is None, f"**{node.args.kwarg.arg} in line {node.lineno}"


def test_import_is_quick_and_light():
    heavy = ["numpy", "pandas", "scipy", "matplotlib", "statsmodels", "tqdm"]
    code = f"import perfmodel, sys; sys.exit(any(name in sys.modules for name in {heavy}))"
    # The best of three: the first may read from a cold disk.
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, check=False)
        seconds.append(time.perf_counter() - start)
        assert done.returncode == 0, "import perfmodel imports a heavy dependency"
    assert min(seconds) < 0.3


def test_a_checkout_runs_uninstalled(tmp_path):
    # -S: without site-packages nothing is installed, and no path hook of an editable one either.
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import perfmodel, importlib.util as u;"
        "sys.exit(u.find_spec('perfmodel.figures') is None)")
    command = [sys.executable, "-S", "-c", code, str(PACKAGE.parent)]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


@pytest.mark.parametrize("name", perfmodel.__all__)
def test_names_of_the_package_can_be_had(name):
    assert callable(getattr(perfmodel, name))
    assert name in dir(perfmodel)


def test_other_names_of_the_package_cannot():
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        perfmodel.colour
