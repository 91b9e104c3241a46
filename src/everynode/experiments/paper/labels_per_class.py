"""Figure: accuracy over the number of labelled nodes, each term alone and all together."""

from everynode.experiments.experiment import BACKBONES, NAMES, SHALLOW, Cell, Experiment

#: Row to objective.
LINES = {"CE": "ce", "CE + MI": "mi", "CE + TV": "tv", "CE + CVG": "cvg", "ENC": "enc"}

EXPERIMENT = Experiment(
    id="labels-per-class",
    title="Labelled nodes per class",
    reference="Figure 2 (fig:objectivesInfluence)",
    about="Cora, random splits: so many training nodes a class, 500 for validation, 1000 for testing (the smallest class has 180 nodes). "
    "GCNII has 8 layers. Splits are drawn anew for each run, but from one graph, so they overlap, the more the more labels there are: the "
    "p-values, which take them for independent, are too small by an unknown factor. The paper shows 100 splits, says of them that ENC "
    "gains 2% on average, and prints no other number, nor GCNII's depth or how many nodes validate and test.",
    over="splits",
    view="lines",
    cells=lambda: [
        Cell(
            row, str(labels), "cora", "random", backbone, objective, panel=NAMES[backbone], per_class=labels, changes=SHALLOW[backbone],
            against=None if objective == "ce" else "CE",
        )
        for backbone in BACKBONES
        for row, objective in LINES.items()
        for labels in range(10, 101, 10)
    ],
    x="labelled nodes per class",
)  # fmt: skip
