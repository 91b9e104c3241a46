"""Pictures that are drawn from ``results/``."""

from __future__ import annotations

from everynode.experiments.experiment import NAMES
from tables.common import ROOT, result
from tables.comparisons import comparisons
from tables.unseen import REGIMES, read_cells


def picture() -> None:
    """Every seed as a dot: cross-entropy beside ENC, pairs joined."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "everynode"
    from matplotlib import pyplot

    found = comparisons()
    figure, axes = pyplot.subplots(
        1, len(found), figsize=(1.25 * len(found) + 1, 3.0), sharey=False, layout="constrained"
    )
    for axis, ((graph, backbone), compared) in zip(axes, found.items(), strict=True):
        runs: dict[str, dict[int, float]] = {"ce": {}, "enc": {}}
        for run in compared["runs"]:
            runs[run["objective"]][run["seed"]] = 100 * run["test_accuracy"]
        for seed, value in runs["ce"].items():
            axis.plot([0, 1], [value, runs["enc"][seed]], color="#9aa4b2", linewidth=0.8, zorder=1)
        for x, (name, colour) in enumerate((("ce", "#b45309"), ("enc", "#0f766e"))):
            values = list(runs[name].values())
            axis.scatter([x] * len(values), values, s=14, color=colour, zorder=2)
            axis.hlines(sum(values) / len(values), x - 0.25, x + 0.25, color=colour, linewidth=2)
        axis.set_xticks([0, 1], ["CE", "ENC"])
        axis.set_xlim(-0.5, 1.5)
        axis.set_title(f"{graph}\n{NAMES[backbone]}", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("test accuracy, %", fontsize=9)
    figure.savefig(ROOT / "docs/every-seed.svg", metadata={"Date": None})


def regrets() -> None:
    """Every cell of the benchmark on unseen graphs: the default minus the best outsider."""
    from matplotlib import pyplot

    cells = read_cells()
    graphs = sorted({(cell.half != "unseen", cell.graph) for cell in cells}, reverse=True)
    places = {graph: place for place, (_, graph) in enumerate(graphs)}
    figure, axis = pyplot.subplots(figsize=(7.2, 0.28 * len(graphs) + 1.2), layout="constrained")
    axis.axvline(0, color="#9aa4b2", linewidth=1, zorder=1)
    for regime, color, shift in (
        ("5", "#b45309", -0.2),
        ("20", "#0f766e", 0.0),
        ("48%", "#4338ca", 0.2),
    ):
        of = [cell for cell in cells if cell.regime == regime]
        for validation, marker in (("yes", "o"), ("no", "D")):
            some = [cell for cell in of if cell.validation == validation]
            axis.errorbar(
                [100 * cell.regret for cell in some], [places[cell.graph] + shift for cell in some],
                xerr=[196 * cell.error for cell in some], fmt=marker, markersize=3.5, color=color,
                linewidth=0.7, label=f"{REGIMES[regime]}{'' if validation == 'yes' else ', no validation set'}",
            )  # fmt: skip
    axis.set_yticks(
        range(len(graphs)), [f"{graph}{' (design)' if design else ''}" for design, graph in graphs]
    )
    axis.set_xlabel("points of the default over the best outsider of the cell", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(ROOT / "docs/unseen.svg", metadata={"Date": None})
    pyplot.close(figure)


def maps() -> None:
    """Cora's nodes in the plane, from the records of ``everynode reproduce tsne``."""
    from matplotlib import pyplot

    kinds = {(record["task"], record["objective"]): record for record in result("tsne-paper")}
    found = [kinds[kind] for kind in (("tsne-input", "ce"), ("tsne", "ce"), ("tsne", "enc"))]
    figure, axes = pyplot.subplots(
        1, len(found), figsize=(3.4 * len(found), 3.5), layout="constrained"
    )
    for axis, record in zip(axes, found, strict=True):
        x, y = zip(*record["positions"], strict=True)
        axis.scatter(x, y, c=record["labels"], cmap="Dark2", s=3, linewidths=0)
        if record["task"] == "tsne-input":
            said = "input features"
        else:
            name = {"ce": "GCN, cross-entropy", "enc": "ENC-GCN"}[record["objective"]]
            said = f"predictions of {name}: {100 * record['test_accuracy']:.1f} %"
        axis.set_title(said, fontsize=9)
        axis.set_axis_off()
    figure.savefig(ROOT / "docs/paper/tsne.png", dpi=110, metadata={"Software": None})
