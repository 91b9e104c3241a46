"""Terms and models from a user's own file, in Python and on the command line."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import everynode as en
from everynode import plugins
from everynode.cli.options import ModelOptions, SettingFlags
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.estimator import NodeClassifier
from everynode.experiments.run_spec import Run
from everynode.models.names import MODELS, model_names
from everynode.objective_names import objective_name, parse_objective, remark
from everynode.objectives.term import Term
from everynode.selection.search_space import search_space
from everynode.settings import Settings

TERM = """
import everynode as en
from everynode.objectives.term import Term

class Confidence(Term):
    name = "confidence"
    default_weight = 0.1

    def forward(self, logits, sample):
        log_y = logits.log_softmax(1)
        return sample.mean_over_nodes(-(log_y.exp() * log_y).sum(1))
"""
MODEL = """
import torch
from torch_geometric.nn import SAGEConv

class TwoHops(torch.nn.Module):
    def __init__(self, num_features, num_classes, hidden_channels=64, dropout=0.5):
        super().__init__()
        self.first = SAGEConv(num_features, hidden_channels)
        self.second = SAGEConv(hidden_channels, num_classes)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x, edge_index):
        x = self.first(self.dropout(x), edge_index).relu()
        return self.second(self.dropout(x), edge_index)

class _Helper(torch.nn.Module):
    pass
"""
SMALL = "generated-60x200x8x3"
QUICK = {"settings": {"epochs": 2, "hidden_channels": 4}, "verbose": False}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the plugins of other tests."""
    monkeypatch.setenv(plugins.VARIABLE, "")
    monkeypatch.setattr(plugins, "_registered", {})


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    term, model = tmp_path / "own_term.py", tmp_path / "own_model.py"
    term.write_text(TERM)
    model.write_text(MODEL)
    return term, model


@pytest.fixture(scope="module")
def graph() -> en.Graph:
    return en.load("citeseer")


# ---------------------------------------------------------------- names


def test_a_file_adds_its_terms_and_models(files):
    for file in files:
        plugins.add(file)
        plugins.add(file)
    assert list(plugins.terms()) == ["confidence"]
    assert list(plugins.models()) == ["twohops"]
    assert model_names() == (*MODELS, "twohops")
    assert os.environ[plugins.VARIABLE].split(os.pathsep) == [str(file) for file in files]
    assert parse_objective("mi+confidence") == ("mi", "confidence")
    assert objective_name("confidence+enc") == "enc+confidence"
    settings = Settings().for_objective("mi+confidence")
    assert settings.active_terms() == {"mi": 0.3, "confidence": 0.1}
    assert settings.for_objective("ce").active_terms() == {}
    assert Settings(weights={"confidence": 2}).for_objective("enc").weights == (
        ("confidence", 2.0),
    )
    assert remark(Settings(weights={"confidence": 2}), "enc") == "with confidence"


def test_the_weight_of_a_term_is_tuned_around_its_default(files):
    plugins.add(files[0])
    space = search_space("gcn", "tv+confidence")["confidence"]
    assert (space["low"], space["high"], space["log"]) == (pytest.approx(0.1 / 30), 3.0, True)


def test_the_identity_of_a_run_has_the_code(files):
    def key() -> str:
        settings = Settings().for_objective("confidence")
        return Run("toy", "digest", "public", 0, 0, "default", "confidence", settings).key

    plugins.add(files[0])
    before = key()
    files[0].write_text(TERM.replace("log_y.exp()", "2 * log_y.exp()"))
    plugins._load_file.cache_clear()
    assert key() != before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import torch\nclass GCN(torch.nn.Module): pass", "defines the model 'gcn', and so does everynode.models.gcn.GCN"),
        (TERM.replace('"confidence"', '"tv"'), "defines the term 'tv', and so does everynode.objectives.total_variation.TotalVariation"),
        (TERM.replace('"confidence"', '"enc"'), "defines the term 'enc', and so does everynode"),
        (TERM.replace('"confidence"', '"a+b"'), "has the name 'a+b': a name starts with a lower-case letter"),
        (TERM + TERM.split("\n\n")[1].replace("class Confidence", "class Other"), "Confidence and Other have the same name 'confidence'"),
        ("import torch\n\nx = undefined\n", "cannot be imported, line 3: NameError: name 'undefined' is not defined."),
        ("x = 1\ndef f(:\n", "cannot be imported, line 2: SyntaxError: invalid syntax."),
        ("import nowhere_at_all\n", "cannot be imported, line 1: ModuleNotFoundError"),
        ("x = 1\n", "defines no term and no model"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_in_one_sentence(tmp_path, text, says):
    file = tmp_path / "own.py"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        plugins.add(file)
    assert says in str(refused.value)
    assert str(file) in str(refused.value) or "everynode_plugin_own" in str(refused.value)
    assert not os.environ[plugins.VARIABLE], "a bad file is not kept"


def test_two_files_with_the_same_name_of_a_term_are_refused_with_both(files, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(TERM)
    plugins.add(files[0])
    with pytest.raises(UsageError) as refused:
        plugins.add(other)
    assert str(refused.value) == (
        f"{other} defines the term 'confidence', and so does {files[0]}: set another `name` in "
        "the class."
    )


def test_a_missing_file_and_an_unknown_name_are_refused(tmp_path):
    with pytest.raises(UsageError, match="There is no plugin file"):
        plugins.add(tmp_path / "missing.py")
    with pytest.raises(UsageError, match="Unknown objective 'confidence'"):
        parse_objective("confidence")


def test_a_class_that_is_defined_again_replaces_the_earlier_one():
    def define() -> type:
        class Own(torch.nn.Module):
            pass

        return Own

    first, second = define(), define()
    assert plugins.register(first) == plugins.register(second) == "own"
    assert plugins.models() == {"own": second}
    from everynode.models import GCN

    assert plugins.register(GCN) == "gcn"


# ---------------------------------------------------------------- in Python


def test_a_term_and_a_model_work_in_the_classifier(files, graph, tmp_path):
    for file in files:
        plugins.add(file)
    model = en.NodeClassifier("twohops", "mi+confidence", **QUICK).fit(graph)
    assert {"ce", "mi", "confidence"} <= set(model.history_)
    model.save(tmp_path / "model")
    again = en.NodeClassifier.load(tmp_path / "model")
    assert (again.predict(graph) == model.predict(graph)).all()


def test_classes_and_instances_work_in_the_classifier(graph, tmp_path):
    class Bias(torch.nn.Module):
        def __init__(self, num_features, num_classes):
            super().__init__()
            self.linear = torch.nn.Linear(num_features, num_classes)

        def forward(self, x, edge_index):
            return self.linear(x)

    class Shift(Term):
        default_weight = 0.5

        def __init__(self, weight=None, by=0.0):
            super().__init__(weight)
            self.by = by

        def forward(self, logits, sample):
            return sample.mean_over_nodes(logits.logsumexp(1)) + self.by

    plain, shifted = (
        en.NodeClassifier(Bias, ["ce", Shift(weight=0.2, by=by)], **QUICK).fit(graph)
        for by in (0.0, 10.0)
    )
    assert plain.objective_ == "ce+shift"
    assert plain.fitted_.settings.weights == (("shift", 0.2),)
    first = [model.history_["shift"][0] for model in (plain, shifted)]
    assert first[1] - first[0] == pytest.approx(10.0, abs=1e-4), "the options of the instance hold"
    shifted.save(tmp_path / "model")
    assert en.NodeClassifier.load(tmp_path / "model").backbone == "bias"
    several = en.NodeClassifier(objective=["auto", Shift(weight=0.2)], **QUICK).fit(graph)
    assert set(several.standings_) == {"ce", "enc", "light-ce", "light-enc"}


# ---------------------------------------------------------------- on the command line


@pytest.mark.usefixtures("elsewhere")
def test_train_compare_and_tune_take_a_plugin(files, call):
    plugin = ("--plugin", files[0], "--plugin", files[1], "--backbone", "twohops", "--json", "-q")
    short = ("--epochs", 2, "--hidden-channels", 4, "--objective", "mi+confidence")
    done = call("train", SMALL, *plugin, *short, "--term-weight", "confidence=0.3")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["backbone"], record["objective"]) == ("twohops", "mi+confidence")
    assert "confidence" in record["terms"]
    done = call("compare", SMALL, *plugin, *short, "--seeds", 1, "--workers", 1)
    assert done.returncode == 0, done.stderr
    tune = (
        "tune",
        SMALL,
        *plugin,
        *short,
        "--trials",
        2,
        "--seeds",
        1,
        "--export",
        "best.toml",
    )
    done = call(*tune, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert 0.1 / 30 <= json.loads(done.stdout)["parameters"]["confidence"] <= 3.0
    preset = ("--preset", "best.toml", "--epochs", 2, "--objective", "mi+confidence")
    done = call("train", SMALL, *plugin, *preset)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("elsewhere")
def test_worker_processes_load_the_plugin(files):
    words = ("compare", SMALL, "--plugin", files[1], "--backbone", "twohops", "--epochs", 1)
    command = [
        sys.executable,
        "-m",
        "everynode",
        *map(str, words),
        "--seeds",
        "2",
        "--workers",
        "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("elsewhere")
def test_a_name_without_its_plugin_is_one_sentence(call):
    done = call("train", "citeseer", "--backbone", "twohops")
    assert done.returncode == 2
    assert "Unknown backbone 'twohops'" in done.stderr


def make_term(code: str):
    """Return an instance of a term whose source is in the line cache, as that of a file is."""
    import linecache

    from everynode.objectives import Term

    text = (
        "class Shifted(Term):\n"
        "    name = 'shifted'\n\n"
        "    def forward(self, logits, sample):\n"
        f"        return sample.mean_over_nodes({code})\n"
    )
    file = f"<{code}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"Term": Term, "__name__": f"made_{abs(hash(code))}"}
    sys.modules[scope["__name__"]] = type(sys)(scope["__name__"])
    sys.modules[scope["__name__"]].__file__ = file
    exec(compile(text, file, "exec"), scope)
    return scope["Shifted"](weight=0.3)


def test_the_digest_of_a_term_follows_its_code_and_its_options(monkeypatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    digests = []
    for term in (make_term("logits.sum(1)"), make_term("-logits.sum(1)")):
        plugins._registered.clear()
        plugins.register_term(term)
        digests.append(plugins.digest({"shifted"}))
    assert digests[0] != digests[1]


def test_terms_that_cannot_be_taken_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    graph = generate(40, 80, 8, 3)
    term = make_term("logits.sum(1)")
    with pytest.raises(UsageError, match="two terms named 'shifted'"):
        NodeClassifier(objective=[term, term], settings={"epochs": 1}).fit(graph)
    with pytest.raises(UsageError, match=r"objective takes names and everynode\.Term objects"):
        NodeClassifier(objective=["ce", type(term)], settings={"epochs": 1}).fit(graph)
    with pytest.raises(UsageError, match="must be a name, or a list of names and terms"):
        NodeClassifier(objective=term, settings={"epochs": 1}).fit(graph)
    with pytest.raises(UsageError, match="Unknown term 'typo'"):
        NodeClassifier(objective="ce", settings={"weights": {"typo": 1.0}}).fit(graph)
    term.scale = torch.nn.Parameter(torch.ones(()))
    with pytest.raises(UsageError, match="has parameters, which only your own loop can train"):
        NodeClassifier(objective=["ce", term], settings={"epochs": 1}).fit(graph)


def test_a_saved_model_with_terms_and_class_weights_trains_them_again(
    monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    graph = generate(60, 150, 8, 3)
    weights = dict.fromkeys(graph.classes[:1], 2.0)
    model = NodeClassifier(
        objective=["ce", make_term("logits.sum(1)")],
        class_weight=weights,
        settings={"epochs": 2},
    ).fit(graph)
    model.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert again.class_weight == weights
    assert dict(again.fit(graph).fitted_.settings.weights) == {"shifted": 0.3}


def test_a_search_space_has_only_settings_that_the_model_takes(files) -> None:
    plugins.add(files[1])
    space = search_space("twohops", "ce")
    assert {"dropout", "normalize_features", "lr"} <= set(space)
    no_effect = {"gcnii_alpha", "num_layers", "layer_dropout", "appnp_alpha", "lr_gnn"}
    assert not (no_effect | {"weight_decay_gnn"}) & set(space), "it has no group 'gnn'"


def test_the_weight_of_a_term_outside_the_objective_is_refused(files) -> None:
    def check(objective: str, weight: str = "confidence=0.2") -> None:
        options = ModelOptions(objective=objective, flags=SettingFlags(weights=(weight,)))
        dataclasses.replace(options, plugin=(files[0],)).load_plugins()

    with pytest.raises(UsageError, match=r"--term-weight confidence=0\.2 has no effect: --obj"):
        check("mi")
    for objective in ("mi+confidence", "enc", "ENC"):
        check(objective)


def test_the_files_of_names_are_found(files) -> None:
    for file in files:
        plugins.add(file)
    found = plugins.files({"twohops", "ce"})
    assert [Path(file).name for file in found] == [files[1].name]
    assert plugins.files({"gcn", "tv"}) == []
