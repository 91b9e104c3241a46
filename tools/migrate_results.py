"""Migrate results/ to the names and keys of this version, once: ``python tools/migrate_results.py OLD``.

``OLD`` is a checkout of the version before. Its own reader verifies the key of every record before
anything is written. Afterwards the new reader verifies every new key, and every value that was not
renamed is compared with the old one as text.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everynode.experiments.exports import read_runs
from everynode.experiments.run_spec import Run
from everynode.settings import Batches, Settings

RESULTS = Path(__file__).parents[1] / "results"
RENAMED = {
    "layers": "num_layers", "channels": "hidden_channels", "select": "monitor", "con": "consistency",
    "con_temperature": "consistency_temperature", "input": "normalize_features", "lr_oc": "lr",
    "wd_oc": "weight_decay", "wd_gnn": "weight_decay_gnn",
}  # fmt: skip
FEATURES = {"row": True, "raw": False}
#: Prints the runs of some exports, as the old version reads them, with their verified keys.
READ_OLD = """
import dataclasses, json, sys
from pathlib import Path
from everynode.data.files import Root
from everynode.experiments.exported import read_runs
found = {}
for file in sys.argv[1:]:
    runs, nameless = read_runs(Path(file), Root.find(None))
    assert not nameless, file
    found[file] = {key: dataclasses.asdict(run) for key, (run, _) in runs.items()}
print(json.dumps(found))
"""


def read_old(old: Path, files: list[Path]) -> dict[str, dict[str, Any]]:
    """Read exports with the old version; it raises if a record does not match its key."""
    done = subprocess.run(
        [sys.executable, "-c", READ_OLD, *map(str, files)], check=True, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(old / "src")},
    )  # fmt: skip
    return json.loads(done.stdout)


def rename_objective(objective: str) -> str:
    """``con`` is ``consistency``."""
    return "+".join(RENAMED.get(term, term) for term in objective.split("+"))


def rename_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Rename settings; ``input`` becomes a truth value."""
    return {
        RENAMED.get(name, name): FEATURES[value] if name == "input" else value
        for name, value in settings.items()
    }


def new_run(old: dict[str, Any]) -> Run:
    """Build the run of this version from the fields of the old one."""
    batches = old["batches"] and Batches(
        **old["batches"] | {"fan_out": tuple(old["batches"]["fan_out"])}
    )
    fields = old | {
        "settings": Settings(**rename_settings(old["settings"])),
        "objective": rename_objective(old["objective"]),
        "batches": batches,
    }
    return Run(**fields)


def all_settings(run: Run | None) -> dict[str, Any]:
    """Return the settings that a record of this version has."""
    return {k: v for k, v in dataclasses.asdict(run.settings).items() if v not in (None, ())}


def rename_column(name: str) -> str:
    """Rename a column of runs-*.csv."""
    outer, _, last = name.rpartition(".")
    if outer in ("settings", "terms"):
        return f"{outer}.{RENAMED.get(last, last)}"
    return "num_layers" if name == "layers" else name


def migrate_table(old: Path, name: str, old_runs: dict[str, Any]) -> dict[str, str]:
    """Migrate runs-*.csv and check it; return the new key of every old one."""
    with (old / "results" / name).open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, strict=True))
    keys = {row["key"]: new_run(old_runs[row["key"]]).key for row in rows}
    assert len(keys) == len(rows) == len(old_runs) == len({*keys.values()}), "a key is not unique"
    filled = Counter[str]()
    made: dict[str, dict[str, str]] = {}
    for row in rows:
        run = new_run(old_runs[row["key"]])
        new = {rename_column(column): text for column, text in row.items()}
        new |= {"key": run.key, "objective": rename_objective(row["objective"])}
        new["settings.normalize_features"] = str(FEATURES[row["settings.input"]])
        worked_out = {"graph_digest": run.graph_digest, "directed": str(run.directed)}
        worked_out |= {f"settings.{k}": str(v) for k, v in all_settings(run).items()}
        for column, text in worked_out.items():
            if new.get(column, "") == "":
                new[column] = text
                filled[column] += 1
        made[run.key] = new
    columns = sorted({c for row in made.values() for c, text in row.items() if text} - {"key"})
    out = io.StringIO()
    writer = csv.DictWriter(out, ["key", *columns], lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(made[key] for key in sorted(made))
    (RESULTS / name).write_text(out.getvalue(), encoding="utf-8")

    # The check starts from the written file.
    with (RESULTS / name).open(newline="", encoding="utf-8") as lines:
        written = {row["key"]: row for row in csv.DictReader(lines, strict=True)}
    runs = read_runs(RESULTS / name)
    assert len(runs) == len(written) == len(rows)
    cells = 0
    for row in rows:
        run, after = new_run(old_runs[row["key"]]), written[keys[row["key"]]]
        assert runs[run.key][0] == run, "the new reader sees another run"
        for column, text in row.items():
            if column in ("key", "objective", "settings.input") or text == "":
                continue
            assert after[rename_column(column)] == text, (row["key"], column)
            cells += 1
        assert after["objective"] == rename_objective(row["objective"])
        assert after["settings.normalize_features"] == str(row["settings.input"] == "row")
        before = {rename_column(c) for c, text in row.items() if text} | {
            "settings.normalize_features"
        }
        added = {c for c, text in after.items() if text} - before
        assert all(c in ("graph_digest", "directed") or c.startswith("settings.") for c in added)
    print(
        f"{name}: {len(rows)} records, {cells:,} cells the same as text; filled in: {dict(filled)}"
    )
    return keys


def rename_record(record: dict[str, Any], run: Run | None) -> dict[str, Any]:
    """Migrate a record of a JSON file; without a run its key cannot be verified and is dropped."""
    new = dict(record)
    if "layers" in new:
        new = {"num_layers" if name == "layers" else name: value for name, value in new.items()}
    new["objective"] = rename_objective(record["objective"])
    new["settings"] = rename_settings(record["settings"])
    if "terms" in record:
        new["terms"] = {RENAMED.get(name, name): value for name, value in record["terms"].items()}
    if run is None:
        del new["key"]
    else:
        new["settings"] |= all_settings(run)
        new["settings"] = {k: v for k, v in new["settings"].items() if v is not None}
        new |= {"graph_digest": run.graph_digest, "directed": run.directed, "key": run.key}
    return dict(sorted(new.items())) if [*record] == sorted(record) else new


def same_record(before: dict[str, Any], after: dict[str, Any], run: Run | None) -> None:
    """Check that a record lost nothing and changed nothing but names and keys."""
    assert run is None or (after["key"] == run.key and all_settings(run) == after["settings"])
    for name, value in before.items():
        if name in ("key", "objective", "settings"):
            continue
        new = after["num_layers" if name == "layers" else name]
        if name == "terms":
            value = {RENAMED.get(term, term): number for term, number in value.items()}
        assert json.dumps(new) == json.dumps(value), name
    assert after["objective"] == rename_objective(before["objective"])
    for name, value in before["settings"].items():
        if value is not None:
            expected = FEATURES[value] if name == "input" else value
            assert json.dumps(after["settings"][RENAMED.get(name, name)]) == json.dumps(expected), (
                name
            )


def migrate_map(old: Path, name: str, old_runs: dict[str, Any]) -> dict[str, str]:
    """Migrate an export in JSON, one record a line, and check it."""
    text = (old / "results" / name).read_text(encoding="utf-8")
    records = json.loads(text)
    assert lines_of(records) == text, "the file is not what an export writes"
    runs = {record["key"]: new_run(old_runs[record["key"]]) for record in records}
    made = {
        runs[record["key"]].key: rename_record(record, runs[record["key"]]) for record in records
    }
    (RESULTS / name).write_text(lines_of([made[key] for key in sorted(made)]), encoding="utf-8")
    written = {r["key"]: r for r in json.loads((RESULTS / name).read_text(encoding="utf-8"))}
    assert len(read_runs(RESULTS / name)) == len(written) == len(records)
    for record in records:
        same_record(record, written[runs[record["key"]].key], runs[record["key"]])
    print(f"{name}: {len(records)} records")
    return {key: run.key for key, run in runs.items()}


def lines_of(records: list[dict[str, Any]]) -> str:
    """Write records as an export does."""
    return "[\n" + ",\n".join(json.dumps(record, sort_keys=True) for record in records) + "\n]\n"


def migrate_comparison(old: Path, file: Path, old_runs: dict[str, Any]) -> None:
    """Migrate compare-*.json and check it."""
    text = file.read_text(encoding="utf-8")
    result = json.loads(text)
    assert json.dumps(result) == text.rstrip("\n"), file
    runs = [new_run(old_runs[r["key"]]) if old_runs else None for r in result["runs"]]
    new = result | {
        "runs": [rename_record(r, run) for r, run in zip(result["runs"], runs, strict=True)]
    }
    (RESULTS / file.name).write_text(
        json.dumps(new) + text[len(text.rstrip("\n")) :], encoding="utf-8"
    )
    written = json.loads((RESULTS / file.name).read_text(encoding="utf-8"))
    assert len(written["runs"]) == len(result["runs"])
    for before, after, run in zip(result["runs"], written["runs"], runs, strict=True):
        same_record(before, after, run)
    assert {k: v for k, v in written.items() if k != "runs"} == {
        k: v for k, v in result.items() if k != "runs"
    }
    print(f"{file.name}: {len(runs)} records{'' if old_runs else ', without a key'}")


def migrate_cells(old: Path, name: str, keys: dict[str, str]) -> None:
    """Migrate tables-*.json: the first twelve digits of the keys, and the name of a flag."""
    text = (old / "results" / name).read_text(encoding="utf-8")
    shortened = {key[:12]: new[:12] for key, new in keys.items()}
    assert len(shortened) == len(keys) == len({*shortened.values()})
    tables = json.loads(text)
    count = 0
    for table in tables:
        for cell in table["cells"]:
            for key in cell["runs"]:
                assert text.count(f'"{key}"') >= 1
                count += 1
    for key in {key for table in tables for cell in table["cells"] for key in cell["runs"]}:
        text = text.replace(f'"{key}"', f'"{shortened[key]}"')
    (RESULTS / name).write_text(text.replace('"of_the_paper": ', '"in_paper": '), encoding="utf-8")
    written = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    for before, after in zip(tables, written, strict=True):
        before["in_paper"] = before.pop("of_the_paper")
        for cell in before["cells"]:
            cell["runs"] = [shortened[key] for key in cell["runs"]]
        assert before == after
    print(f"{name}: {len(tables)} experiments, {count} keys in cells")


def migrate_trials(old: Path, name: str) -> None:
    """Migrate trials-*.csv and check it."""
    with (old / "results" / name).open(newline="", encoding="utf-8") as lines:
        header, *rows = list(csv.reader(lines, strict=True))
    at, objective = header.index("input"), header.index("objective")
    new = [[RENAMED.get(column, column) for column in header]]
    for row in rows:
        cells = list(row)
        cells[at], cells[objective] = str(FEATURES[row[at]]), rename_objective(row[objective])
        new.append(cells)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(new)
    (RESULTS / name).write_text(out.getvalue(), encoding="utf-8")
    with (RESULTS / name).open(newline="", encoding="utf-8") as lines:
        _, *written = list(csv.reader(lines, strict=True))
    for before, after in zip(rows, written, strict=True):
        differ = {header[i] for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
        assert differ <= {"input", "objective"}, differ
    print(f"{name}: {len(rows)} trials")


def rename_keys(value: Any, names: dict[str, str], labels: Callable[[str], str]) -> Any:
    """Rename the keys of tables and the labels (values of ``variant``, ``way``, ``base``)."""
    if isinstance(value, list):
        return [rename_keys(one, names, labels) for one in value]
    if not isinstance(value, dict):
        return value
    new = {}
    for name, inner in value.items():
        if name == "input" and names.get(name) == "normalize_features":
            inner = FEATURES[inner]
        elif name in ("variant", "way", "base") and isinstance(inner, str):
            inner = labels(inner)
        new[names.get(name, name)] = rename_keys(inner, names, labels)
    return new


def migrate_other(old: Path, name: str, names: dict[str, str]) -> None:
    """Migrate the result of a benchmark: names of settings, and labels such as ``con 1``."""
    text = (old / "results" / name).read_text(encoding="utf-8")
    result = json.loads(text)
    end = text[len(text.rstrip("\n")) :]
    assert json.dumps(result, indent=1) + end == text, name

    def label(words: str) -> str:
        return " ".join("consistency" if word == "con" else word for word in words.split(" "))

    new = rename_keys(result, names, label)
    (RESULTS / name).write_text(json.dumps(new, indent=1) + end, encoding="utf-8")
    before, after = text.splitlines(), (RESULTS / name).read_text(encoding="utf-8").splitlines()
    differ = [(a.strip(), b.strip()) for a, b in zip(before, after, strict=True) if a != b]
    for a, b in differ:  # a renamed key keeps its value, and a label or a truth value has no number
        assert a.partition(": ")[2] == b.partition(": ")[2] or a.partition(": ")[2][0] == '"', (
            a,
            b,
        )
    print(f"{name}: {len(before)} lines, {len(differ)} renamed, e.g. {differ[0] if differ else ''}")


def check_presets(old: Path) -> None:
    """Check the presets, whose names were replaced with the names of the code."""
    files = [
        *sorted(RESULTS.glob("*.toml")),
        *(RESULTS.parent / "src/everynode/presets" / f"{n}.toml" for n in ("tuned", "authors")),
    ]
    for file in files:
        before = tomllib.loads((old / file.relative_to(RESULTS.parent)).read_text(encoding="utf-8"))
        after = tomllib.loads(file.read_text(encoding="utf-8"))
        rows = 0
        for split, graphs in before.items():
            for graph, backbones in graphs.items():
                for backbone, objectives in backbones.items():
                    assert len(objectives) == len(after[split][graph][backbone])
                    for objective, row in objectives.items():
                        new = dict(after[split][graph][backbone][rename_objective(objective)])
                        study, new_study = row.pop("study", {}), new.pop("study", {})
                        assert repr(rename_settings(row)) == repr(new), (file, graph, backbone)
                        searched = [RENAMED.get(name, name) for name in study.pop("searched", [])]
                        assert searched == new_study.pop("searched", []), (file, graph, backbone)
                        flags = repr(study).replace(" --layers ", " --num-layers ")
                        assert flags == repr(new_study), (file, graph, backbone)
                        rows += 1
        print(f"{file.name}: {rows} rows the same")


def main() -> None:
    """Migrate every file of results/."""
    old = Path(sys.argv[1]).resolve()
    source = old / "results"
    exports = [source / "runs-paper.csv", source / "runs-tuned.csv", source / "tsne-paper.json"]
    comparisons = sorted(source.glob("compare-*.json"))
    with tempfile.TemporaryDirectory() as folder:
        lists = {}
        for file in comparisons:
            records = json.loads(file.read_text(encoding="utf-8"))["runs"]
            if "versions" in records[0]:  # else 0.2.0 wrote them, with keys of another kind
                lists[file] = Path(folder) / file.name
                lists[file].write_text(json.dumps(records), encoding="utf-8")
        runs = read_old(old, [*exports, *lists.values()])
    print("old keys verified:", {Path(file).name: len(found) for file, found in runs.items()})
    keys: dict[str, str] = {}
    for name in ("runs-paper.csv", "runs-tuned.csv"):
        keys |= migrate_table(old, name, runs[str(source / name)])
    maps = migrate_map(old, "tsne-paper.json", runs[str(source / "tsne-paper.json")])
    assert maps.items() <= keys.items(), "the maps are runs of the table"
    for file in comparisons:
        migrate_comparison(old, file, runs[str(lists[file])] if file in lists else {})
    for name in sorted(file.name for file in source.glob("tables-*.json")):
        migrate_cells(old, name, keys)
    for name in sorted(file.name for file in source.glob("trials-*.csv")):
        migrate_trials(old, name)
    for name in ("cost-model", "disk", "minibatch", "one-standard-error"):
        migrate_other(old, f"{name}.json", RENAMED)
    for name in ("candidates", "class-prior", "recipe"):
        migrate_other(old, f"{name}.json", {})
    migrate_other(old, "stock-loop.json", {"input": "features"})
    check_presets(old)


if __name__ == "__main__":
    main()
