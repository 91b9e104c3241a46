"""The page: the same bytes from the same runs, every number with its runs, nothing loaded, names as text."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from html.parser import HTMLParser

import pytest

from everynode.experiments.experiment import experiments, experiments_for
from everynode.experiments.store import Store
from everynode.report.page import PAPER, page, page_of_store

KEY = re.compile(r'<code class="key">([0-9a-f]{12})</code>')
ESCAPED = "&lt;b&gt;x&lt;/b&gt;&amp;"


def test_the_same_runs_give_the_same_bytes_in_whatever_order_they_were_stored(
    two_each, make_up, nowhere, tmp_path, sections
):
    few = [
        run
        for run in two_each.runs.values()
        if run.dataset == "texas" or run.task.startswith("tsne")
    ]
    there = make_up(few).put_into(tmp_path / "a.db")
    back = make_up(reversed(few)).put_into(tmp_path / "b.db")
    made, outcomes = page_of_store(Store(there, must_exist=True), "paper", nowhere)
    assert made == page_of_store(Store(back, must_exist=True), "paper", nowhere)[0]
    assert [outcome.experiment.id for outcome in outcomes] == [
        "datasets",
        "heterophilic",
        "tv-vs-preg",
        "tsne",
    ]
    assert "everynode reproduce arxiv --preset paper" in sections(made)["not-run"]


def test_a_page_may_have_more_seeds_than_ten(make_up, nowhere, tmp_path, sections):
    runs = [
        run
        for cell in experiments()["halves"].cells()
        for run in cell.runs("paper", "seeds", 12, nowhere)
    ]
    store = Store(make_up(runs).put_into(tmp_path / "many.db"), must_exist=True)
    ten, _ = page_of_store(store, "paper", nowhere)
    twelve, _ = page_of_store(store, "paper", nowhere, seeds=12)
    assert len(set(KEY.findall(ten))) == 60
    assert "12 further runs of the store belong to no table here" in ten
    assert len(set(KEY.findall(twelve))) == 72
    assert "further run" not in twelve
    assert "--seeds" not in ten
    assert "everynode reproduce halves --preset paper --seeds 12" in sections(twelve)["halves"]
    assert (
        "everynode reproduce labels-per-class --preset paper --seeds 12"
        in sections(twelve)["not-run"]
    )
    assert "everynode reproduce tsne --preset paper<" in sections(twelve)["not-run"]
    five, _ = page_of_store(store, "paper", nowhere, folds=5)
    assert "everynode reproduce homophilic --preset paper --folds 5" in sections(five)["not-run"]


def test_every_table_and_figure_is_there(text, plans, sections):
    found = sections(text)
    for experiment, plan in plans.items():
        section, panels = found[experiment.id], len({cell.panel for cell in plan})
        assert section.count('<table class="matrix') == (
            panels if experiment.view == "table" else 0
        )
        drawn = section.split("<div popover", 1)[0].count('<svg viewBox="0 0 4')
        plots = len({(cell.panel, cell.backbone) for cell in plan})
        assert (
            drawn
            == {
                "table": plots if experiment.x else 0,
                "lines": panels,
                "bars": 1,
                "maps": len(plan),
            }[experiment.view]
        )
        assert f"everynode reproduce {experiment.id} --preset paper" in section
        assert f'href="#{experiment.id}"' in text


def test_every_planned_run_of_the_store_is_shown_by_its_key_and_no_other(text, two_each):
    assert set(KEY.findall(text)) == {key[:12] for key in two_each.runs}


def test_runs_that_belong_to_no_table_are_counted_and_not_shown(plans, make_up, two_each):
    strange = make_up(
        [
            *list(two_each.runs.values())[:3],
            next(iter(plans[experiments()["homophilic"]].values()))[0],
        ]
    )
    chosen = {
        experiment: plan for experiment, plan in plans.items() if experiment.id == "homophilic"
    }
    made = page(chosen, "paper", strange.records, strange.curve)[0]
    assert len(KEY.findall(made)) == 1
    assert "1 run. 3 further runs of the store" in made


def test_it_loads_nothing(text):
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert text.count(PAPER) == 1  # which a reader may follow
    text = text.replace(f' href="{PAPER}"', "")
    assert not re.search(r"https?:|url\(|@import|<(?:img|iframe|object|embed|base)\b", text)
    assert set(re.findall(r'\b(?:src|href)="([^"]{1,5})', text)) <= {
        "data:",
        *(link[:5] for link in re.findall(r'href="(#[^"]*)', text)),
    }


def test_names_with_markup_are_text(text, sections):
    assert "<b>x</b>" not in text
    assert "</script><!--" not in text
    section = sections(text)["odd"]
    assert section.count(ESCAPED) > 8
    assert f"at epoch 3. {ESCAPED}" in text  # the message of a run that diverged


class Checker(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.named = Counter(), set()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if "id" in found:
            self.ids[found["id"]] += 1
        self.named |= {
            found[name].removeprefix("#")
            for name in ("popovertarget", "aria-labeledby", "data-opens")
            if found.get(name)
        }
        if tag == "a" and found["href"] != PAPER:
            self.named.add(found["href"].removeprefix("#"))


def test_every_reference_has_its_one_target(text):
    checker = Checker()
    checker.feed(text)
    assert checker.named <= set(checker.ids)
    assert set(checker.ids.values()) == {1}


def test_the_page_of_all_runs_is_of_sane_size(plans, make_up):
    everything = make_up(run for plan in plans.values() for runs in plan.values() for run in runs)
    made = page(plans, "paper", everything.records, everything.curve)[0]
    assert len(everything.runs) > 4000
    assert len(made.encode()) < 7_000_000  # with three plots behind each of some 650 numbers
    assert "further run" not in made


def test_an_empty_store_says_what_to_run(nowhere, tmp_path):
    Store(tmp_path / "runs.db")
    made, outcomes = page_of_store(Store(tmp_path / "runs.db", must_exist=True), "paper", nowhere)
    assert not outcomes
    assert "0 runs." in made
    for name in (experiment.id for experiment in experiments_for("paper")):
        assert f"everynode reproduce {name} --preset paper" in made


# ------------------------------------------------------------------ the command


@pytest.fixture
def store(two_each, make_up, tmp_path, elsewhere):
    return make_up([run for run in two_each.runs.values() if run.dataset == "texas"]).put_into(
        tmp_path / "runs" / "runs.db"
    )


@pytest.mark.usefixtures("elsewhere")
def test_the_command_writes_the_page(call, store, tmp_path):
    said = call("report")
    assert (said.returncode, said.stdout) == (0, "")
    assert "in 3 tables and figures" in said.stderr
    page = (tmp_path / "report.html").read_bytes()
    said = call("report", tmp_path / "runs", "--out", tmp_path / "deep" / "page.html", "--json")
    assert json.loads(said.stdout)["experiments"] == ["datasets", "heterophilic", "tv-vs-preg"]
    assert (tmp_path / "deep" / "page.html").read_bytes() == page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "report.html", "runs"]
    (tmp_path / "my runs").mkdir()
    shutil.copy(store, tmp_path / "my runs" / "runs.db")
    assert call("report", "my runs").returncode == 0
    page = (tmp_path / "report.html").read_text()
    assert (
        "everynode reproduce heterophilic --preset paper --graphs texas --rows ENC-GCN,GCN --out 'my runs'<"
        in page
    )
    assert re.search(r"everynode results show \w{12} --store 'my runs/runs.db'<", page)


@pytest.mark.usefixtures("elsewhere")
def test_no_page_is_written_of_a_preset_without_runs(call, make_up, two_each, tmp_path):
    trained = [r for r in two_each.runs.values() if (r.dataset, r.task) == ("texas", "train")]
    make_up(trained).put_into(tmp_path / "runs" / "runs.db")
    out = tmp_path / "report.html"
    for before in (None, "a good page"):
        if before:
            out.write_text(before)
        said = call("report", "--preset", "tuned")
        assert (said.returncode, said.stdout) == (2, "")
        assert said.stderr.startswith(
            "everynode: No run in runs/runs.db belongs to a table or figure with --preset tuned"
        )
        assert said.stderr.endswith("(it has runs of paper): nothing was written.\n")
        assert (out.read_text() if out.exists() else None) == before


@pytest.mark.usefixtures("elsewhere")
def test_an_empty_store_has_a_page_that_replaces_none(call, tmp_path):
    Store(tmp_path / "runs" / "runs.db")
    assert call("report").returncode == 0
    page = (tmp_path / "report.html").read_text()
    assert "everynode reproduce halves --preset paper" in page
    (tmp_path / "report.html").write_text("a good page")
    said = call("report")
    assert (said.returncode, "nothing was written" in said.stderr) == (2, True)
    assert (tmp_path / "report.html").read_text() == "a good page"


def with_preset(name, make_up, nowhere, **changes):
    """Two runs of every cell of halves with another preset, and with changed settings."""
    cells = [
        dataclasses.replace(cell, changes=(*cell.changes, *changes.items()))
        for cell in experiments()["halves"].cells()
    ]
    return make_up(run for cell in cells for run in cell.runs(name, "seeds", 2, nowhere))


@pytest.mark.usefixtures("elsewhere")
def test_the_page_is_of_the_only_preset_that_there_is_unless_one_is_named(
    call, make_up, nowhere, store, tmp_path
):
    with_preset("default", make_up, nowhere).put_into(tmp_path / "mine" / "runs.db")
    said = call("report", "mine")
    assert said.returncode == 0
    assert "All runs in mine had the preset default, which the page shows.\n" in said.stderr
    assert "everynode reproduce halves --preset default" in (tmp_path / "report.html").read_text()
    said = call("report", "mine", "--preset", "paper")
    assert (said.returncode, "(it has runs of default): nothing was written." in said.stderr) == (
        2,
        True,
    )
    with_preset("default", make_up, nowhere).put_into(store)
    assert json.loads(call("report", "--json").stdout)["preset"] == "paper"


@pytest.mark.usefixtures("elsewhere")
def test_runs_whose_settings_flags_changed_are_said_to_be_such(call, make_up, nowhere, tmp_path):
    with_preset("default", make_up, nowhere, epochs=30).put_into(tmp_path / "runs" / "runs.db")
    for words in (
        ("report",),
        ("report", "--preset", "default"),
        ("results", "tables", "t.json", "--preset", "default"),
    ):
        said = call(*words)
        assert said.returncode == 2
        assert (
            "The runs in runs/runs.db with --preset default belong to no table or figure: their settings"
            in said.stderr
        )
        assert "(it has runs of default)" not in said.stderr


@pytest.mark.usefixtures("elsewhere")
def test_who_has_a_store_elsewhere_is_told_how_to_name_it(call):
    said = call("report")
    assert (
        said.returncode,
        said.stderr.endswith(" Or name another store: `everynode report runs/demo`.\n"),
    ) == (3, True)
    assert "another store" not in call("report", "elsewhere.db").stderr


@pytest.mark.usefixtures("elsewhere", "store")
def test_the_page_replaces_no_file_but_a_page(call, tmp_path):
    out = tmp_path / "table.html"
    out.write_text("<!doctype html><title>My own table</title>")
    said = call("report", "--out", out)
    assert (said.returncode, out.read_text()) == (2, "<!doctype html><title>My own table</title>")
    assert (
        said.stderr
        == f"everynode: {out} is not a page of everynode and is not replaced: name another file with --out, or move it away.\n"
    )
    out.write_text("")
    for _ in range(2):
        assert call("report", "--out", out).returncode == 0


@pytest.mark.usefixtures("elsewhere")
def test_exports_have_a_page_with_their_times_and_maps(call, make_up, nowhere, tmp_path, sections):
    names = ("run-times", "tsne")
    few = [
        run
        for name in names
        for runs in experiments()[name].plan("paper", 2, nowhere)[0].values()
        for run in runs
    ]
    make_up(few).put_into(tmp_path / "all.db")
    for file in ("runs.csv", "maps.json"):
        assert call("results", "export", file, "--store", "all.db").returncode == 0
    for files, there in ((["runs.csv"], {"run-times"}), (["runs.csv", "maps.json"], {*names})):
        assert {*names} & {
            *json.loads(call("report", *files, "--json").stdout)["experiments"]
        } == there
    made = (tmp_path / "report.html").read_text()
    whole = page_of_store(Store(tmp_path / "all.db", must_exist=True), "paper", nowhere)[0]
    for name in names:
        assert set(KEY.findall(sections(made)[name])) == set(KEY.findall(sections(whole)[name]))
    said = call("report", "runs.csv", "all.db")
    assert (said.returncode, "A page shows one store, or several exports" in said.stderr) == (
        2,
        True,
    )


def foreign(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE precious (data TEXT)")


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    "make", [None, foreign, lambda path: path.write_bytes(b"SQLite format 3\0" + b"x" * 900)]
)
def test_what_is_no_store_is_refused_and_left_alone(call, tmp_path, make):
    path, out = tmp_path / "x.db", tmp_path / "report.html"
    if make:
        make(path)
    before = path.read_bytes() if make else None
    out.write_text("an older page")
    said = call("report", path, "--out", out)
    assert said.returncode == 3
    assert str(path) in said.stderr
    assert out.read_text() == "an older page"
    assert (path.read_bytes() if path.exists() else None) == before


@pytest.mark.usefixtures("elsewhere")
def test_the_page_never_replaces_the_store(call, store):
    before = store.read_bytes()
    said = call("report", store, "--out", store)
    assert said.returncode == 2
    assert store.read_bytes() == before
