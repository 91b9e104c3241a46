"""The page: the same bytes from the same runs, every number with its runs, nothing loaded, names as text."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
import shlex
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from html.parser import HTMLParser

import pytest

from everynode.experiments.analysis import analyze
from everynode.experiments.experiment import Cell, experiments
from everynode.experiments.store import Store
from everynode.report import figures
from everynode.report.cell import _place, digits_of
from everynode.report.page import PAPER, page, page_of_store

KEY = re.compile(r'<code class="key">([0-9a-f]{12})</code>')
ESCAPED = "&lt;b&gt;x&lt;/b&gt;&amp;"


@pytest.fixture(scope="module")
def text(plans, two_each):
    return page(plans, "paper", two_each.records, two_each.curve)[0]


def sections(text):
    """The page's sections by id."""
    parts = re.split(r"<section", text)[1:]
    return {m.group(1): part for part in parts if (m := re.search(r'^[^>]*id="([^"]+)"', part))}


def test_the_same_runs_give_the_same_bytes_in_whatever_order_they_were_stored(
    two_each, make_up, nowhere, tmp_path
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


def test_a_page_may_have_more_seeds_than_ten(make_up, nowhere, tmp_path):
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


def test_every_table_and_figure_is_there(text, plans):
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


def test_the_axis_of_a_figure_ends_where_accuracies_do(plans, make_up):
    """Two runs that differ by much have an interval from -500 to 600%, which is no reason to draw it."""
    depth = experiments()["depth"]
    (cell, runs), *_ = plans[depth].items()
    two = make_up(runs[:2])
    records = two.records
    for record, accuracy in zip(records.values(), (0.1, 0.9), strict=True):
        record["test_accuracy"] = accuracy
    text = page(
        {depth: {dataclasses.replace(cell, against=None): runs[:2]}}, "paper", records, two.curve
    )[0]
    plot = text.split('<svg viewBox="0 0 4', 1)[1].split("</svg>", 1)[0]
    numbers = [float(found.replace("−", "-")) for found in re.findall(r">([−-]?\d+)</text>", plot)]
    assert {0.0, 100.0} <= set(numbers)
    assert min(numbers) >= 0
    assert max(numbers) <= 100


@pytest.mark.parametrize(
    ("name", "plots"), [("depth", 9), ("labels-per-class", 3), ("mi-vs-tv", 3)]
)
def test_plots_that_are_read_beside_each_other_have_one_axis(text, name, plots):
    """GCNII's 76 to 86 beside GCN's 30 to 90 made a loss of four points look like one of twenty-four."""
    drawn = sections(text)[name].split("<div popover", 1)[0].split('<svg viewBox="0 0 420')[1:]
    axes = {tuple(re.findall(r'class="yt">([^<]+)<', plot.split("</svg>", 1)[0])) for plot in drawn}
    assert (len(drawn), len(axes)) == (plots, 1)


def test_counts_have_no_decimals_where_only_the_paper_has_them(text):
    """The row of a graph that is not here read "paper 169,343.00"."""
    graphs = sections(text)["datasets"]
    assert "paper 169,343" in graphs
    assert "169,343." not in graphs


def test_the_papers_numbers_have_the_decimals_that_it_prints(text):
    """78.20 among 77.08 and 88.13 was 78.2, and 81.1 among milliseconds 81.10."""
    found = sections(text)
    assert "paper 78.20" in found["homophilic"]
    assert "paper 86.0" in found["semi-supervised"]
    assert "paper 81.1<" in found["run-times"]
    assert "paper 12.58" in found["run-times"]
    assert not re.search(r"paper \d\d\.\d\b[^.\d]", found["heterophilic"])


def test_one_run_has_no_interval_in_a_figure(plans, make_up):
    depth = experiments()["depth"]
    (cell, runs), *_ = plans[depth].items()
    outcome = analyze(
        depth,
        "paper",
        {dataclasses.replace(cell, against=None): runs[:1]},
        make_up(runs[:1]).records,
    )
    (point,) = figures._points(depth, outcome.cells, dict.fromkeys(outcome.cells, "id"))
    assert math.isnan(point.low)
    assert math.isnan(point.high)


def test_the_interval_that_is_shown_is_the_one_that_decides(plans, make_up):
    experiment = experiments()["homophilic"]
    everything = make_up(run for runs in plans[experiment].values() for run in runs)
    made = page({experiment: plans[experiment]}, "paper", everything.records, everything.curve)[0]
    cells = re.findall(r'class="cell">(.*?)</button>', made)
    assert len(cells) == 18
    verdicts = set()
    for cell in cells:
        low, high = map(float, re.search(r'class="ci">([\d.]+) to ([\d.]+)<', cell).groups())
        paper, verdict = (
            float(re.search(r"paper ([\d.]+)", cell)[1]),
            re.search(r'class="verdict (\w+)"', cell)[1],
        )
        assert verdict == ("better" if low > paper else "short" if high < paper else "reproduced")
        verdicts.add(verdict)
    assert len(verdicts) > 1  # or this test would say little
    panel = made.split('id="homophilic-0"')[1].split("<div popover")[0]
    assert "95% interval on these folds" in panel
    assert "and for what others would give" in panel


def test_no_interval_of_accuracies_is_wider_than_there_are(plans, make_up):
    semi = experiments()["semi-supervised"]
    (cell, runs), *_ = plans[semi].items()
    two = make_up(runs[:2])
    records = two.records
    for record, accuracy in zip(records.values(), (0.1, 0.9), strict=True):
        record["test_accuracy"] = accuracy
    assert "0.0 to 100.0" in page({semi: {cell: runs[:2]}}, "paper", records, two.curve)[0]


def test_what_it_all_says_stands_on_top(plans, make_up):
    semi = experiments()["semi-supervised"]
    everything = make_up(run for runs in plans[semi].values() for run in runs)
    records = everything.records
    for record in records.values():  # cross-entropy as the paper's GCN on Cora; ENC ahead of it on all graphs, on Pubmed with all networks
        ahead = (
            0.0
            if record["objective"] == "ce"
            else 0.01 + (0.001 * (record["seed"] % 3) if record["dataset"] == "pubmed" else 0)
        )
        record["test_accuracy"] = 0.8065 + 0.001 * record["seed"] + ahead
        record["test_oracle_accuracy"] = record["test_accuracy"] + 0.03
    made, (outcome,) = page({semi: plans[semi]}, "paper", records, everything.curve)
    tally = Counter(
        cell.verdict.partition(" ")[0] for cell in outcome.cells if cell.cell.objective == "ce"
    )
    assert tally["reproduced"] >= 1
    assert (
        f"Of its accuracies that could be judged, we reach {tally['reproduced'] + tally['better']} of 9 with cross-entropy, "
        in made
    )
    short = [cell for cell in outcome.cells if cell.verdict.startswith("short")]
    below = sum(cell.summary.high + 3 < cell.cell.published for cell in short)
    assert 0 < below < len(short)
    assert (
        f"Of the paper's {len(short)} accuracies that are not reached here, {below} would not be even so."
        in made
    )
    # On the others all differences are the same, which is no test.
    assert (
        "its terms are ahead of cross-entropy beyond chance in 3 of 3 comparisons, behind in 0."
        in made
    )
    assert 'data-label="gains that are significant">3 up, 0 down, of 3<' in made
    enc = next(
        cell for cell in outcome.cells if (cell.cell.row, cell.cell.column) == ("ENC-GCN", "cora")
    )
    assert enc.published_gain == pytest.approx(85.3 - 81.1)
    button = re.search(
        r'<button popovertarget="semi-supervised-3" class="cell">(.*?)</button>', made
    )[1]
    assert "gain +1.0</b> (+4.2)" in button


def test_what_stands_in_several_tables_counts_once(plans, make_up):
    chosen = {
        experiments()[name]: plans[experiments()[name]]
        for name in ("semi-supervised", "depth", "halves", "labels-per-class")
    }
    everything = make_up(run for plan in chosen.values() for runs in plan.values() for run in runs)
    made, outcomes = page(chosen, "paper", everything.records, everything.curve)
    cells = [cell for outcome in outcomes for cell in outcome.cells]
    judged = {
        (cell.keys, cell.cell.published)
        for cell in cells
        if cell.verdict and cell.cell.objective == "enc"
    }
    assert len(judged) < sum(bool(cell.verdict) and cell.cell.objective == "enc" for cell in cells)
    assert f" of {len(judged)} with ENC." in made
    # Not ENC with fixed halves, which is no cross-entropy, nor random splits.
    places = {
        (cell.cell.panel, cell.cell.row, cell.cell.column, cell.cell.split): cell for cell in cells
    }
    compared = {
        (
            cell.keys,
            places[cell.cell.panel, cell.cell.against, cell.cell.column, cell.cell.split].keys,
        )
        for cell in cells
        if cell.p_holm is not None and cell.cell.published is not None
    }
    assert f" of {len(compared)} comparisons, behind in " in made


def test_what_the_paper_does_not_have_is_judged_and_not_counted(plans, make_up):
    readings = experiments()["readings"]
    everything = make_up(run for runs in plans[readings].values() for run in runs)
    made, (outcome,) = page(
        {readings: plans[readings]}, "paper", everything.records, everything.curve
    )
    assert sum(bool(cell.verdict) for cell in outcome.cells) == len(outcome.cells) > 20
    assert "not in the paper · test accuracy in %" in made
    assert "that could be judged" not in made
    assert "comparisons, behind" not in made
    assert made.count("does not apply") == 4, "cross-entropy has neither gate nor halves"
    assert "reading</span>" in made
    assert {cell.published_gain for cell in outcome.cells} == {None}, (
        "both have the same number of the paper beside them"
    )


def test_the_overview_says_why_runs_are_missing(plans, make_up):
    names = ("datasets", "semi-supervised", "run-times")
    chosen = {experiments()[name]: plans[experiments()[name]] for name in names}
    runs = [run for plan in chosen.values() for made in plan.values() for run in made]
    some = make_up(
        run
        for run in runs
        if run.task != "time"
        and run.dataset != "ogbn-arxiv"
        and (run.dataset, run.seed) != ("pubmed", 9)
    )
    overview = sections(page(chosen, "paper", some.records, some.curve)[0])["overview"]
    assert re.findall(r'class="why">([^<]+)<', overview) == [
        "without ogbn-arxiv",
        "6 to do",
        "not timed here",
    ]


def test_print_has_the_numbers_of_figures(text):
    """There no mark can be asked, and no list opened."""
    found = sections(text)
    tables = {
        name: found[name].count('<div class="on-paper">')
        for name in ("labels-per-class", "mi-vs-tv", "halves", "weights", "depth")
    }
    assert tables == {"labels-per-class": 3, "mi-vs-tv": 3, "halves": 1, "weights": 1, "depth": 0}


def test_cells_without_a_number_are_empty_to_the_sorting(plans, make_up):
    semi = experiments()["semi-supervised"]
    (cell, runs), *others = plans[semi].items()
    bad = make_up(runs, lambda run: True)
    made = (
        page({semi: {cell: runs, **dict(others)}}, "paper", bad.records, bad.curve)[0]
        .split('<table class="matrix')[1]
        .split("</table>")[0]
    )
    assert made.count('<td class="none" data-v="">') == 17
    assert made.count('data-v=""') == 18  # and the one that diverged


def test_only_signs_that_occur_are_explained(text, plans, make_up):
    assert "<dt>7 of 10 runs" in text
    assert "<dt>with consistency" not in text
    semi = experiments()["semi-supervised"]
    whole = make_up(run for runs in plans[semi].values() for run in runs)
    made = page({semi: plans[semi]}, "paper", whole.records, whole.curve)[0]
    assert "<dt>7 of 10 runs" not in made
    assert "<dt>diverged" not in made


def test_figures_have_the_papers_lines_and_hollow_marks_where_runs_are_missing(
    text, plans, make_up
):
    depth = sections(text)["depth"].split("<div popover", 1)[0]
    assert depth.count('class="beside"') == 18  # six methods on three graphs
    assert 'class="pt hollow"' in depth
    assert 'class="beside"' not in sections(text)["weights"]  # the paper prints no numbers of it
    whole = make_up(run for runs in plans[experiments()["depth"]].values() for run in runs)
    chosen = {experiments()["depth"]: plans[experiments()["depth"]]}
    assert 'class="pt hollow"' not in page(chosen, "paper", whole.records, whole.curve)[0]


def test_runs_from_an_export_say_that_they_have_no_curves(plans, make_up):
    semi = experiments()["semi-supervised"]
    (cell, runs), *_ = plans[semi].items()
    made = page({semi: {cell: runs}}, "paper", make_up(runs).records, lambda key: {})[0]
    assert "Without training curves: these runs were taken over from an export" in made


def test_versions_are_named_once_and_in_their_order(plans, two_each):
    records = {key: {**record} for key, record in two_each.records.items()}
    for record, version in zip(records.values(), ("0.10.0", "0.9.0", "0.10.0.dev1"), strict=False):
        record["version"] = version
    said = page(plans, "paper", records, two_each.curve)[0]
    assert "Made with everynode 0.2.0, 0.9.0, 0.10.0, 0.10.0.dev1 (protocol 1), torch " in said


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


def test_the_numbers_are_those_of_the_outcome(text, plans, two_each):
    found, records = sections(text), two_each.records
    for experiment, plan in plans.items():
        if experiment.view != "table":
            continue
        for index, cell in enumerate(analyze(experiment, "paper", plan, records).cells):
            if not cell.keys:
                continue
            button = re.search(
                rf'<button popovertarget="{experiment.id}-{index}" class="cell">(.*?)</button>',
                found[experiment.id],
            )
            assert button
            if cell.summary is not None:
                assert (
                    f'<span class="mean">{cell.summary.mean:,.{digits_of(experiment, cell)}f}'
                    in button[1]
                )
            assert ('class="verdict' in button[1]) is bool(cell.verdict)
            assert cell.verdict.replace("-", "−") in button[1]
            assert (f"{len(cell.keys)} of {cell.planned} runs" in button[1]) is (not cell.complete)
            assert (f"{cell.diverged} diverged" in button[1]) is (cell.diverged > 0)
            panel = (
                found[experiment.id]
                .split(f'id="{experiment.id}-{index}"')[1]
                .split("<div popover")[0]
            )
            assert KEY.findall(panel) == [key[:12] for key in cell.keys]
            assert f"everynode results show {cell.keys[0][:12]}" in panel


def test_the_best_test_epoch_is_called_a_diagnostic(text):
    assert text.count("Diagnostic, not a result:") > 100
    assert text.count("best test epoch (diagnostic)") >= 8
    assert "oracle" not in text.lower()


def test_curves_confusion_terms_settings_and_versions_stand_behind_a_number(text):
    panel = text.split('id="depth-6"')[1].split("<div popover")[0]
    for title in (
        "Training curves",
        "At the selected epoch",
        "Confusion matrix",
        "Runs",
        "Settings",
        "Versions",
        "Make it again",
    ):
        assert f"<h4>{title}</h4>" in panel
    assert re.findall(r'data-name="([^"]+)"', panel) == [
        "CE",
        "MI",
        "TV",
        "CVG",
        "total",
        "validation loss",
        "validation accuracy",
    ]
    assert all(d.count(" ") <= 300 for d in re.findall(r' d="([^"]+)"', panel))
    assert "tv_gate = raw" in panel
    assert "torch 2." in panel


def test_it_loads_nothing(text):
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert text.count(PAPER) == 1  # which a reader may follow
    text = text.replace(f' href="{PAPER}"', "")
    assert not re.search(r"https?:|url\(|@import|<(?:img|iframe|object|embed|base)\b", text)
    assert set(re.findall(r'\b(?:src|href)="([^"]{1,5})', text)) <= {
        "data:",
        *(link[:5] for link in re.findall(r'href="(#[^"]*)', text)),
    }


def test_names_with_markup_are_text(text):
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
            for name in ("popovertarget", "aria-labelledby", "data-opens")
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
    assert len(made.encode()) < 6_500_000  # with three plots behind each of some 650 numbers
    assert "further run" not in made


def test_an_empty_store_says_what_to_run(nowhere, tmp_path):
    Store(tmp_path / "runs.db")
    made, outcomes = page_of_store(Store(tmp_path / "runs.db", must_exist=True), "paper", nowhere)
    assert not outcomes
    assert "0 runs." in made
    for name in experiments():
        assert f"everynode reproduce {name} --preset paper" in made


def test_a_cell_whose_runs_all_diverged_has_no_number(plans, make_up):
    experiment = experiments()["semi-supervised"]
    first = next(iter(plans[experiment].values()))
    everything = make_up(first, lambda run: True)
    made = page({experiment: plans[experiment]}, "paper", everything.records, everything.curve)[0]
    button = re.search(
        r'<button popovertarget="semi-supervised-0" class="cell">(.*?)</button>', made
    )
    assert button
    assert '<span class="mean">diverged</span>' in button[1]
    assert "10 diverged" in button[1]


# ------------------------------------------------------------------ the command


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
def test_the_command_behind_a_number_makes_its_runs_and_no_others(text, plans, call):
    """It was that of a whole graph: 360 runs for a number of ten."""
    for experiment, plan in plans.items():
        if experiment.id == "odd":
            continue
        cells = list(plan)
        by_place = {(cell.panel, cell.row, cell.column): runs for cell, runs in plan.items()}
        for index in sorted({0, len(cells) // 3, len(cells) // 2, len(cells) - 1}):
            if not plan[cell := cells[index]] or cell.dataset in (
                "cornell-legacy",
                "ogbn-arxiv",
            ):  # which are not here
                continue
            panel = text.split(f'id="{experiment.id}-{index}"')[1].split("<div popover")[0]
            command = html.unescape(re.search(r">(everynode reproduce [^<]*)<", panel)[1])
            told = call(*shlex.split(command)[1:], "--dry-run", "--json")
            assert told.returncode == 0, (command, told.stderr)
            expected = {run.key for run in plan[cell]}
            if cell.against is not None:
                expected |= {run.key for run in by_place[cell.panel, cell.against, cell.column]}
            assert {run["key"] for run in json.loads(told.stdout)} == expected, command


def test_a_name_with_a_comma_is_left_to_the_other_flags():
    cells = [
        Cell(row, column, "cora", "public", against=None)
        for row in ("a, b", "c")
        for column in ("1", "2")
    ]
    assert _place(cells[0], cells) == ["--columns", "1"]
    assert _place(cells[3], cells) == ["--rows", "c", "--columns", "2"]


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


@pytest.mark.usefixtures("elsewhere", "store")
def test_no_page_is_written_of_a_preset_without_runs(call, tmp_path):
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
        said.stderr.endswith("Or name another store: `everynode report runs/demo`.\n"),
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
def test_exports_have_a_page_with_their_times_and_maps(call, make_up, nowhere, tmp_path):
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
