"""Figure: fixed halves of the labeled nodes against random halves."""

from everynode.experiments.experiment import BACKBONES, NAMES, SHALLOW, Cell, Experiment

EXPERIMENT = Experiment(
    id="halves",
    title="Fixed against random halves",
    reference="Figure 4 (fig:fixedVsRandom)",
    about="Cora, public split: ENC with the two halves of the labeled nodes drawn once, or "
    "redrawn at every step; GCNII with 8 layers. The paper finds a large gap in favor of "
    "random halves. Its fixed halves are averaged over ten draws, as here over ten seeds."
    " It prints no numbers, and does not state the split, GCNII's depth, or whether the "
    "other terms were on.",
    over="seeds",
    view="bars",
    cells=lambda: [
        Cell(
            f"{halves} halves", NAMES[backbone], "cora", "public", backbone, "enc",
            changes=(("halves", halves), *SHALLOW[backbone]),
            against="fixed halves" if halves == "random" else None,
        )
        for halves in ("fixed", "random")
        for backbone in BACKBONES
    ],
    x="backbone",
)  # fmt: skip
