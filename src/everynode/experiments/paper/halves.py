"""Figure: halves of the labelled nodes that are drawn once, against halves that are drawn at every step."""

from everynode.experiments.experiment import BACKBONES, NAMES, SHALLOW, Cell, Experiment

EXPERIMENT = Experiment(
    id="halves",
    title="Fixed against random halves",
    reference="Figure 4 (fig:fixedVsRandom)",
    about="Cora, public split: ENC with the two halves of the labelled nodes drawn once, or anew at every step; GCNII with 8 layers. The "
    "paper finds a large gap in favour of random halves, its fixed ones averaged over ten draws, as here by ten seeds. It prints no "
    "numbers, and neither the split nor GCNII's depth nor whether the other terms were on.",
    over="seeds",
    view="bars",
    cells=lambda: [
        Cell(
            f"{halves} halves", NAMES[backbone], "cora", "public", backbone, "enc", changes=(("halves", halves), *SHALLOW[backbone]),
            against="fixed halves" if halves == "random" else None,
        )
        for halves in ("fixed", "random")
        for backbone in BACKBONES
    ],
    x="backbone",
)  # fmt: skip
