import inspect
import json
from dataclasses import replace

import numpy as np
import pytest

import frot
from frot import InputError
from frot.cli.match import make_matcher
from frot.correspondence import PRESETS, load_match, object_points, read_flow
from frot.correspondence import Matcher as RealMatcher
from tests.correspondence.fake_match import FakePhoto, fake_match
from tests.correspondence.small import cat, convolutions


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Stand in for the network: what `Matcher` was asked for, and a match of two cats."""
    match = fake_match()
    calls: dict = {"options": None, "photos": None, "match": match}

    class Matcher:
        def __init__(self, **options):
            if options.get("method") == "magic":
                raise InputError("method: 'magic' is none of frot, ot")
            calls["options"] = options
            asked = {key: options[key] for key in ("preset", "method") if key in options}
            self.settings = replace(PRESETS[asked.pop("preset", "frot")], **asked)

        def __call__(self, a, b):
            calls["photos"] = (a, b)
            return calls["match"]

        def activated(self, match):
            return match

    def read_photo(path):
        if not path.exists():
            raise InputError(f"{path} does not exist")
        if path.read_bytes()[:3] != b"cat":
            raise InputError(f"{path} is no picture that can be read")
        photo = match.source if path.name == "a.png" else match.target
        return FakePhoto(photo.pixels, path.name)

    import frot.correspondence as library

    monkeypatch.setattr(library, "Matcher", Matcher, raising=False)
    monkeypatch.setattr(library, "read_photo", read_photo, raising=False)
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"cat")
    return calls


def rows_of(done):
    """Numbers of the table that was printed: x, y, x, y, confidence."""
    lines = [line.split() for line in done.stdout.splitlines()]
    lines = [words for words in lines if len(words) == 6 and words[-1].endswith("%")]
    return np.array([[float(word.strip(",%")) for word in words[1:]] for words in lines])


@pytest.mark.parametrize(
    "words",
    [
        ("--points", "120,80", "--points", "60.5,200"),
        ("--points", "120,80 60.5,200"),
        ("--points", "120,80; 60.5,200"),
    ],
)
def test_points_go_where_the_library_says(run, made, words):
    done = run("match", "a.png", "b.png", *words)
    assert done.exit_code == 0, done.output
    moved = made["match"].transfer([[120.0, 80.0], [60.5, 200.0]])
    expected = np.column_stack([[[120, 80], [60.5, 200]], moved.points, 100 * moved.confidence])
    assert rows_of(done) == pytest.approx(expected, abs=0.51)
    assert made["options"] == {}
    assert [photo.name for photo in made["photos"]] == ["a.png", "b.png"]


def test_confidence_that_cannot_vary_is_not_printed(run, made, tmp_path):
    made["match"] = replace(made["match"], side=96)
    done = run("match", "a.png", "b.png", "--points", "120,80", "--report", "m.html")
    assert done.exit_code == 0, done.output
    assert "confidence" not in done.stdout
    assert "%" not in done.stdout
    assert "Too few cells to say how sure points are; a larger --side has more" in done.stdout
    page = (tmp_path / "m.html").read_text()
    assert "<div hidden><span>confidence</span>" in page


def test_layers_interval_and_status_are_printed(run, made):
    done = run("match", "a.png", "b.png", "--grid", 6)
    assert "Heaviest of 16 layers: stage3.4 0.202, stage3.3 0.178" in done.stdout
    result = made["match"].result
    assert f"optimum in [{result.lower:.8g}, {result.upper:.8g}]" in done.stdout
    assert "CONVERGED: The interval is within the tolerance." in done.stdout
    assert len(rows_of(done)) == 20
    assert "... and 10 more points" in done.stdout
    assert "360 x 300 to 472 x 360 pixels" in done.stderr


def test_a_grid(run, made):
    done = run("match", "a.png", "b.png", "--grid", 6, "--json")
    points = np.array([point["source"] for point in json.loads(done.stdout)["points"]])
    assert len(points) == 6 * 5
    assert points[0] == pytest.approx([29.5, 29.5])
    assert points[-1] == pytest.approx([329.5, 269.5])


def test_points_are_chosen_on_the_object(run, made):
    done = run("match", "a.png", "b.png", "--json")
    points = [point["source"] for point in json.loads(done.stdout)["points"]]
    np.testing.assert_allclose(points, object_points(made["match"]))


def test_options_reach_the_matcher(run, made):
    words = ["--network", "timm:resnet101", "--weights", "w.pth", "--layers", "stem, 7"]
    words += ["--method", "ot", "--preset", "scot", "--device", "cpu", "--side", 400]
    assert run("match", "a.png", "b.png", *words).exit_code == 0
    assert made["options"] == {
        "backbone": "timm:resnet101",
        "weights": "w.pth",
        "layers": ["stem", 7],
        "method": "ot",
        "preset": "scot",
        "side": 400,
        "device": "cpu",
    }


@pytest.fixture
def onnx_file(tmp_path):
    """A small network, and two photographs."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    data = pytest.importorskip("skimage.data")
    from PIL import Image

    from tests.correspondence.backbones.onnx_files import write

    Image.fromarray(data.chelsea()[60:180, 100:240]).save(tmp_path / "a.png")
    Image.fromarray(data.chelsea()[64:184, 110:250]).save(tmp_path / "b.png")
    return write(tmp_path / "small.onnx")


def test_an_onnx_file(run, onnx_file):
    words = ["match", "a.png", "b.png", "--network", onnx_file, "--side", 96, "--device", "cpu"]
    done = run(*words, "--layers", "added0, added1", "--points", "60,60", "--json")
    assert done.exit_code == 0, done.output
    match = RealMatcher(str(onnx_file), layers=["added0", "added1"], side=96, device="cpu")(
        "a.png", "b.png"
    )
    found = json.loads(done.stdout)["alpha"]
    assert found == pytest.approx(match.alpha, abs=1e-6)
    assert tuple(found) == ("added0", "added1")


def test_a_network_that_is_not_known_is_named_by_its_option(run, onnx_file):
    done = run("match", "a.png", "b.png", "--network", "no.onnx")
    assert done.exit_code == 2
    assert "no.onnx does not exist" in done.stderr
    done = run("match", "a.png", "b.png", "--network", "magic")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("error: network: 'magic'")


def test_files_are_written(run, made, tmp_path):
    files = ["--picture", "m.png", "--report", "m.html", "--json"]
    done = run("match", "a.png", "b.png", "--points", "120,80", *files)
    assert done.exit_code == 0, done.output
    assert [line for line in done.stderr.splitlines() if line.startswith("Wrote")] == [
        "Wrote m.png",
        "Wrote m.html",
    ]
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "m.html").read_text("utf-8")
    assert "frot match a.png b.png --points 120,80 --picture m.png --report m.html" in page
    numbers = json.loads(done.stdout)
    moved = made["match"].transfer([[120.0, 80.0]])
    (point,) = numbers["points"]
    assert point["target"] == pytest.approx(moved.points[0])
    assert point["confidence"] == pytest.approx(moved.confidence[0])
    assert numbers["alpha"] == made["match"].alpha
    assert numbers["result"]["status"] == "CONVERGED"
    assert numbers["target"]["size"] == [360, 472]


def test_a_method_without_transport(run, made):
    made["match"] = replace(made["match"], result=None, method="nn", phi=None)
    done = run("match", "a.png", "b.png", "--json")
    assert done.exit_code == 0
    assert "optimum" not in done.stderr
    numbers = json.loads(done.stdout)
    assert numbers["result"] is None
    assert numbers["phi"] == {}


def test_stopped_before_the_tolerance(run, made):
    open_result = replace(made["match"].result, status=frot.Status.MAX_ITER)
    made["match"] = replace(made["match"], result=open_result)
    done = run("match", "a.png", "b.png")
    assert done.exit_code == 3
    assert "MAX_ITER" in done.stdout


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--preset", "frot-paper"], frot.Status.MAX_ITER, 0),
        (["--preset", "frot-paper"], frot.Status.INTERRUPTED, 130),
        # It solves to the tolerance.
        (["--preset", "frot-paper", "--method", "uniform"], frot.Status.MAX_ITER, 3),
    ],
)
def test_whoever_asks_for_steps_has_them(run, made, words, status, code):
    made["match"] = replace(made["match"], result=replace(made["match"].result, status=status))
    done = run("match", "a.png", "b.png", *words)
    assert done.exit_code == code
    assert status.name in done.stdout


@pytest.mark.usefixtures("onnx_file")
def test_the_papers_preset_ends_well(run, tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic"
    )
    transformers.ResNetForImageClassification(config).save_pretrained(tmp_path / "network")
    words = ["--preset", "frot-paper", "--side", 64, "--device", "cpu", "--points", "60,60"]
    done = run("match", "a.png", "b.png", *words, "--network", "transformers:network")
    assert "MAX_ITER" in done.stdout
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--points", "120"], "points: '120' is no point; write x,y such as 120,80"),
        (["--points", "1,2,3"], "points: '1,2,3' is no point"),
        (["--points", "a,b"], "points: 'a,b' is no point"),
        (["--points", "nan,2"], "points: 'nan,2' is no point"),
        (["--points", " "], "points: none are given"),
        (["--points", "500,20"], "points: 500,20 is outside a.png, which is 360 x 300 pixels"),
        (["--points=-1,20"], "points: -1,20 is outside"),
        (["--points", "1,2", "--grid", "3"], "grid: points are given already"),
        (["--grid", "0"], "grid: 0 points a side"),
        (["--method", "magic"], "method: 'magic' is none of"),
        (["--picture", "m.txt"], "m.txt must end in .png or"),
        (["--picture", "no/m.png"], "no does not exist"),
        (["--report", "m.pdf"], "m.pdf must end in .html"),
        (["--picture", "b.png"], "b.png is read from; give the path of another file"),
    ],
)
def test_bad_input_is_one_line_before_the_work(run, made, words, text):
    done = run("match", "a.png", "b.png", *words)
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert text in line
    assert made["photos"] is None


@pytest.mark.parametrize("content", [None, b"text"])
def test_a_photograph_that_is_none(run, made, tmp_path, content):
    (tmp_path / "b.png").unlink()
    if content:
        (tmp_path / "b.png").write_bytes(content)
    done = run("match", "a.png", "b.png")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: b.png ")
    assert made["photos"] is None


def test_dense_answers_are_written(run, made, tmp_path):
    made["match"] = match = RealMatcher(convolutions(), side=96, device="cpu")(cat(), cat(x=68))
    done = run("match", "a.png", "b.png", "--flow", "a.flo", "--save", "match.npz")
    assert done.exit_code == 0, done.output
    flow = match.flow()
    found = read_flow(tmp_path / "a.flo")
    np.testing.assert_array_equal(found.displacement[flow.valid], flow.displacement[flow.valid])
    assert load_match(tmp_path / "match.npz").alpha == match.alpha
    for name in ("a.flo", "match.npz"):
        assert f"Wrote {name}" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--flow", "flow.png"], "must end in .flo or .npy"),
        (["--save", "match.json"], "must end in .npz"),
    ],
)
def test_dense_answers_that_cannot_be_written(run, made, words, said):
    done = run("match", "a.png", "b.png", *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert made["photos"] is None


def test_options_are_named_as_arguments_of_the_matcher():
    """So that messages of the one can be told as options of the other."""
    options = inspect.signature(make_matcher).parameters
    assert options.keys() <= inspect.signature(RealMatcher).parameters.keys()


def test_it_says_how_often_a_was_looked_at(made, run, tmp_path):
    a, b = tmp_path / "a.png", tmp_path / "b.png"
    told = []
    for reflected, looks in ((False, (-2.0,)), (False, (-0.6, 0.3)), (True, (0.1, 2.0))):
        made["match"] = replace(made["match"], reflected=reflected, looks=looks)
        done = run("match", str(a), str(b), "--points", "120,80")
        words = ("was looked at mirrored", "by two looks, and more than 1", "face opposite ways")
        told.append(tuple(word in " ".join(done.stdout.split()) for word in words))
    assert told == [(False, False, False), (True, True, False), (True, True, True)]
