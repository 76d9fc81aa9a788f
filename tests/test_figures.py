"""Every figure computes, draws, says what was measured and modelled, and is written whole."""

import json
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from perfmodel import plotting
from perfmodel.cli import main
from perfmodel.figures import NAMES, load
from perfmodel.figures.measured import MEASURED, MODELLED, grid
from perfmodel.figures.time_breakdown import TERM_STYLES, TYPICAL
from perfmodel.gpu.breakdown import TERMS
from perfmodel.measurements import validate

DEGREES = [1, 2, 4, 8, 16]


@pytest.fixture(scope="module")
def tables():
    return {name: load(name).compute() for name in NAMES}


@pytest.fixture(scope="module")
def figures(tables):
    return {name: load(name).draw(tables[name]) for name in NAMES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    assert main(["figures", "-o", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_complete(tables, name):
    table = tables[name]
    assert len(table) > 0
    assert not table.isna().any(axis=None)
    numbers = table.select_dtypes("number").to_numpy(float)
    assert np.isfinite(numbers).all()


@pytest.mark.parametrize("name", NAMES)
def test_each_row_or_column_says_measured_or_modelled(tables, name):
    table = tables[name]
    if "source" in table:
        assert set(table["source"]) == {MEASURED, MODELLED}
    else:
        timed = [column for column in table if column.endswith("_us")]
        assert timed and all(c.startswith((MEASURED, MODELLED)) for c in timed)
        assert {c.split("_")[0] for c in timed} == {MEASURED, MODELLED}


@pytest.mark.parametrize("name", NAMES)
def test_axes_are_labelled(figures, name):
    panels = [axes for axes in figures[name].axes if axes.axison]
    labels = [axes.get_xlabel() for axes in panels] + [axes.get_ylabel() for axes in panels]
    assert any(labels[: len(panels)]) and any(labels[len(panels):])
    quantities = ("time", "rate", "intensity", "size", "error")
    for label in labels:
        if any(word in label for word in quantities):
            assert label.endswith("]"), f"{label} lacks a unit"


@pytest.mark.parametrize("name", NAMES)
def test_no_text_is_cut_off(figures, name):
    figure = figures[name]
    figure.draw_without_rendering()
    page = figure.bbox
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box is None or (box.x0 >= -1 and box.y0 >= -1)
        assert box is None or (box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1)


@pytest.mark.parametrize("name", NAMES)
def test_captions_say_what_is_what(name):
    module = load(name)
    assert module.TITLE and not module.TITLE.endswith(".")
    assert module.CAPTION.endswith(".") and "easured" in module.CAPTION
    assert "without that GEMM" in module.CAPTION or "not seen the GEMM" in module.CAPTION


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(ValueError, match="figure must be one of roofline, parity, .*not 'pie'"):
        load("pie")


def test_grid_agrees_with_validation():
    data = grid()
    assert [len(data.gemms), len(data.kernels), list(data.degrees)] == [195, 58, DEGREES]
    modelled, measured = data.seconds[MODELLED], data.seconds[MEASURED]
    every = pd.DataFrame({"predicted_us": modelled.ravel(), "time_us": measured.ravel()})
    rounded = round(validate.errors(every)["mape_pct"], 2)
    assert rounded == pytest.approx(data.device.fit["unseen_mape_pct"], abs=0.02)


def test_modelled_times_are_out_of_fold():
    # GEMM 0 with the values of the fold that left it out, and not with the device's own.
    from perfmodel.gpu.machine import machine_of
    from perfmodel.gpu.timing import concurrent_time

    data = grid()
    label = np.array(data.gemms.labels[:1])
    [(_, values, _)] = validate.unseen_values(data.device, label)
    inputs = (data.gemms[:1], data.kernels, data.occupancy, 8, data.rounds)
    seen = concurrent_time(machine_of(data.device, "fp16"), *inputs)
    unseen = concurrent_time(machine_of(data.device, "fp16", values), *inputs)
    at_8 = data.seconds[MODELLED][0, :, DEGREES.index(8)]
    np.testing.assert_allclose(at_8, unseen, rtol=1e-12)
    assert not np.allclose(at_8, seen, rtol=1e-6)


def test_roofline_points_lie_below_the_peak(tables):
    # 132 compute units x 1.98 GHz x 4096 FLOP/clk
    assert tables["roofline"]["rate_tflop_per_s"].max() < 132 * 1.98e9 * 4096 / 1e12


def test_go_kernel_gains_and_the_picks_regret(tables):
    table = tables["go_gain"]
    own = table[table["picked_by"] == table["source"]]
    assert (own["go_over_default"] >= 1).all()
    key = ["m", "n", "k", "concurrency_degree"]
    best = own[own["source"] == MEASURED].set_index(key)["go_time_us"]
    crossed = table[table["picked_by"] != table["source"]]
    assert set(crossed["source"]) == {MEASURED}
    picked = crossed.set_index(key)["go_time_us"]
    assert (picked >= best).all()
    # As `perfmodel validate` reports the regret of the pick.
    regret = np.log(picked / best).groupby("concurrency_degree").mean().pipe(np.exp)
    assert (regret < 1.06).all()


def test_kernel_features_start_from_isolation(tables):
    table = tables["kernel_features"]
    alone = table[table["concurrency_degree"] == 1]
    ratios = [column for column in table if column.endswith("_ratio")]
    assert (alone[ratios] == 1).all(axis=None)
    assert alone["still_isolated_best"].all()


def test_breakdown_sums_to_the_modelled_time(tables):
    table = tables["time_breakdown"]
    assert TERM_STYLES.keys() == TERMS.keys()
    assert len(table) == len(TYPICAL) * len(DEGREES) * 2
    terms = table[[f"modelled_{term}_us" for term in TERMS]].sum(axis=1)
    np.testing.assert_allclose(terms, table["modelled_time_us"], rtol=1e-9)
    default, go = (table[table["kernel"] == kernel] for kernel in ("default", "go"))
    assert (go["measured_time_us"].to_numpy() <= default["measured_time_us"].to_numpy()).all()


def test_drawing_leaves_no_state(tables):
    import matplotlib

    before = dict(matplotlib.rcParams)
    load("go_gain").draw(tables["go_gain"])
    assert dict(matplotlib.rcParams) == before


def test_everything_is_written(folder):
    names = {f"{name}.{suffix}" for name in NAMES for suffix in ("csv", "pdf", "png")}
    assert {path.name for path in folder.iterdir()} == names | {"index.html"}
    for name in NAMES:
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert len(pd.read_csv(folder / f"{name}.csv")) > 0


def test_gallery_links_what_is_there(folder):
    seen = []
    page = HTMLParser()
    page.handle_starttag = lambda tag, attributes: seen.append((tag, dict(attributes)))
    page.feed((folder / "index.html").read_text(encoding="utf-8"))
    assert ("html", {"lang": "en"}) in seen
    pictures = [attributes for tag, attributes in seen if tag == "img"]
    assert [picture["src"] for picture in pictures] == [f"{name}.png" for name in NAMES]
    assert all(picture["alt"] for picture in pictures)
    links = [attributes["href"] for tag, attributes in seen if tag == "a"]
    identifiers = {attributes.get("id") for _, attributes in seen}
    for link in links:
        assert link[1:] in identifiers if link.startswith("#") else (folder / link).exists()


def test_gallery_escapes_text():
    from perfmodel.cli.figures import gallery

    page = gallery({"x": SimpleNamespace(TITLE="a < b", CAPTION='c & "d"')})
    assert "a &lt; b" in page and "c &amp; &quot;d&quot;" in page


def test_same_bytes_again(folder, tmp_path):
    assert main(["figures", "time_breakdown", "go_gain", "-o", str(tmp_path)]) == 0
    for name in ("time_breakdown", "go_gain"):
        for suffix in ("csv", "pdf", "png"):
            again = (tmp_path / f"{name}.{suffix}").read_bytes()
            assert again == (folder / f"{name}.{suffix}").read_bytes(), suffix


def test_tables_are_computed_the_same_again(tables):
    grid.cache_clear()
    pd.testing.assert_frame_equal(load("parity").compute(), tables["parity"], check_exact=True)


def test_command_prints_what_it_wrote(folder, tmp_path, capsys):
    target = tmp_path / "new" / "folder"
    assert main(["figures", "roofline", "-o", str(target), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    [figure] = printed["figures"]
    assert figure["name"] == "roofline" and figure["title"] == load("roofline").TITLE
    for path in (figure["csv"], figure["pdf"], figure["png"], printed["index"]):
        assert (target / path.rsplit("/", 1)[1]).exists()
    assert 'src="parity.png"' not in (target / "index.html").read_text(encoding="utf-8")


def test_command_lists(capsys):
    assert main(["figures", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == list(NAMES)


def test_command_refuses(tmp_path, capsys):
    assert main(["figures", "roofline", "pie", "-o", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "pie" in message and "go_gain" in message
    (tmp_path / "file").write_text("x")
    assert main(["figures", "roofline", "-o", str(tmp_path / "file")]) == 2
    assert "--output must be a folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failed_save_leaves_what_was(tmp_path):
    old = tmp_path / "x.pdf"
    old.write_text("old")

    def fail(*_, metadata):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        plotting.save(SimpleNamespace(savefig=fail), tmp_path / "x")
    assert old.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["x.pdf"]
