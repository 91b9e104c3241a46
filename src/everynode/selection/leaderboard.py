"""The leaderboard: every candidate with its score, its time and its weight in the ensemble."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from everynode.evaluation.intervals import Score
from everynode.extras import need_extra
from everynode.storage.plain_values import from_plain

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

#: The outcome of a candidate that the time limit left out.
NO_TIME = "not started: no time left"


@dataclass(frozen=True)
class LeaderboardRow:
    """One candidate.

    Parameters
    ----------
    candidate : str
        Its name.
    uses : str
        ``features``, ``graph`` or ``both``.
    accuracy : Score
        Out-of-fold accuracy with a 95% interval; NaN without a result.
    log_loss : float
        Out-of-fold log-loss after temperature scaling.
    seconds : float
        The time of its trainings.
    folds, networks : int
        The folds that it finished, and the networks trained.
    weight : float
        Its weight in the ensemble.
    outcome : str
        ``in the ensemble``, ``finalist``, or why it ended earlier.
    """

    candidate: str
    uses: str
    accuracy: Score
    log_loss: float
    seconds: float
    folds: int
    networks: int
    weight: float
    outcome: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with None for NaN."""
        values = asdict(self) | {"accuracy": [_plain(x) for x in self.accuracy]}
        return values | {"log_loss": _plain(self.log_loss)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> LeaderboardRow:
        """Build a row from JSON."""
        score = Score(*(math.nan if x is None else float(x) for x in values["accuracy"]))
        loss = math.nan if values["log_loss"] is None else float(values["log_loss"])
        row = from_plain(cls, values | {"accuracy": score, "log_loss": 0.0})
        return replace(row, log_loss=loss)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


@dataclass(frozen=True)
class Leaderboard(Sequence[LeaderboardRow]):
    """The candidates, the best first.

    Parameters
    ----------
    rows : tuple of LeaderboardRow
        The rows, by log-loss; candidates that finished more folds come first.

    Examples
    --------
    >>> row = LeaderboardRow("gcn", "both", Score(0.9, 0.85, 0.94), 0.3, 1.2, 3, 3, 1.0, "")
    >>> print(Leaderboard((row,)))
    candidate  accuracy  95% interval  log-loss  seconds  folds  weight
    gcn           90.0%  85.0 to 94.0     0.300      1.2      3    1.00
    """

    rows: tuple[LeaderboardRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def left_out(self) -> int:
        """The number of candidates that the time limit left untrained."""
        return sum(row.outcome == NO_TIME for row in self.rows)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table for a terminal."""
        heads = ("candidate", "accuracy", "95% interval", "log-loss", "seconds", "folds", "weight")
        table = [heads, *(self.cells(row) for row in self.rows)]
        widths = [max(len(cells[i]) for cells in table) for i in range(len(heads))]
        for cells in table:
            first, *rest = cells
            right = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
            yield "  ".join([first.ljust(widths[0]), *right]).rstrip()

    @staticmethod
    def cells(row: LeaderboardRow) -> tuple[str, ...]:
        """Return the cells of a row as text; a row without a result has dashes."""
        trained = not math.isnan(row.accuracy.value)
        value, low, high = (f"{100 * x:.1f}" for x in row.accuracy)
        return (
            row.candidate,
            f"{value}%" if trained else "-",
            f"{low} to {high}" if trained else "-",
            f"{row.log_loss:.3f}" if trained else "-",
            f"{row.seconds:.1f}",
            str(row.folds),
            f"{row.weight:.2f}" if row.weight else "-",
        )

    def to_list(self) -> list[dict[str, Any]]:
        """Return plain values for JSON."""
        return [row.to_dict() for row in self.rows]

    @classmethod
    def from_list(cls, rows: Sequence[dict[str, Any]]) -> Leaderboard:
        """Build a leaderboard from JSON."""
        return cls(tuple(LeaderboardRow.from_dict(row) for row in rows))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per candidate; the accuracy has three columns."""
        table = need_extra("tables", "Leaderboard.to_pandas", otherwise=", or use to_list()")
        rows = []
        for row in self.rows:
            values = row.to_dict()
            accuracy, low, high = values.pop("accuracy")
            rows.append(
                {"candidate": values.pop("candidate"), "accuracy": accuracy,
                 "accuracy_low": low, "accuracy_high": high, **values}
            )  # fmt: skip
        frame: pandas.DataFrame = table.DataFrame(rows)
        return frame
