"""One-click repairs: other roles of columns for what the reader found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from everynode.app.project import Source
from everynode.io.column_names import ALL, NONE, USUAL_NAMES, WITHOUT
from everynode.io.summary import GraphSummary

#: What a column of the node table can be, and of the edge table.
NODE_CHOICES = ("id", "label", "split", "name", "feature", "left out")
EDGE_CHOICES = ("source", "target", "weight", "not used")
#: The names of the roles where :class:`Source` calls them differently.
FIELDS = {"name": "display"}
#: A repair offers this many columns as the label.
CANDIDATES = 4


class Repair(NamedTuple):
    """A change of the roles.

    Attributes
    ----------
    text : str
        What the button says.
    source : Source
        The source after the change.
    """

    text: str
    source: Source


def repairs(source: Source, summary: GraphSummary | None, error: str = "") -> list[Repair]:
    """Return the repairs for what the reader reported.

    Parameters
    ----------
    source : Source
        The files as they were read.
    summary : GraphSummary or None
        The summary; None: the files could not be read.
    error : str
        Why they could not be read.
    """
    texts = [error]
    offers: list[Repair] = []
    if summary is not None:
        texts += [note.text for note in summary.notes]
        for leak in summary.leaks:
            changed = with_role(source, leak.column, "left out")
            offers.append(Repair(f"Leave out {leak.column}", changed))
        if summary.unused_weight:
            changed = with_role(source, summary.unused_weight, "weight", edges=True)
            offers.append(Repair(f"Use {summary.unused_weight} as weight", changed))
        if not summary.classes:
            offers += [
                Repair(f"{name} is the label", with_role(source, name, "label"))
                for name in _likely_labels(summary)
            ]
    text = "\n".join(texts)
    if "--unknown" in text or "unknown='" in text:
        offers.append(Repair("Leave these edges out", replace(source, unknown="drop")))
        offers.append(Repair("Add these nodes", replace(source, unknown="add")))
    if "--date-order" in text:
        offers.append(Repair("The day comes first", replace(source, date_order="dmy")))
        offers.append(Repair("The month comes first", replace(source, date_order="mdy")))
    if "--split none" in text:
        offers.append(Repair("It is not a split", replace(source, split=NONE)))
    if "(--directed)" in text:
        offers.append(Repair("Keep the direction of edges", replace(source, directed=True)))
    return [offer for offer in offers if offer.source != source]


def _likely_labels(summary: GraphSummary) -> list[str]:
    """Return the columns that are likely to be the label: classes, not numbers or texts."""
    kinds = ("category", "boolean")
    return [column.name for column in summary.columns if column.kind in kinds][:CANDIDATES]


def with_role(source: Source, column: str, role: str, *, edges: bool = False) -> Source:
    """Return the source with another role of a column.

    A role that only one column can have is taken from the column that was named before.

    >>> with_role(Source(id="a"), "b", "id").id
    'b'
    >>> with_role(Source(), "zip", "left out").features
    'all,-zip'
    >>> with_role(Source(features="all,-zip"), "zip", "feature").features
    'all'
    """
    single = ("source", "target", "weight") if edges else ("id", "label", "split", "name")
    changes: dict[str, str | None] = {}
    for other in single:
        name = FIELDS.get(other, other)
        if getattr(source, name) == column:
            changes[name] = None
    if role in single:
        changes[FIELDS.get(role, role)] = column
    elif role == "not used":
        if source.weight in (None, column):
            changes["weight"] = NONE
    else:
        for name in ("label", "split"):
            is_usual = column.lower() in USUAL_NAMES[name]
            if getattr(source, name) == column or (getattr(source, name) is None and is_usual):
                changes[name] = NONE
        changes["features"] = _features(source.features, column, wanted=role == "feature")
    if role in single and not edges:
        changes["features"] = _features(source.features, column, wanted=True)
    return replace(source, **changes)  # type: ignore[arg-type]


def _features(features: str, column: str, *, wanted: bool) -> str:
    """Return the feature columns with or without a column."""
    words: Sequence[str] = [
        word for word in features.split(",") if word not in (column, WITHOUT + column)
    ]
    if ALL in words:
        words = words if wanted else [*words, WITHOUT + column]
    elif wanted:
        words = [*words, column]
    return ",".join(words)
