"""The leaderboard as text, JSON and a table of pandas."""

import json
import math

from everynode.evaluation.intervals import Score
from everynode.selection.leaderboard import Leaderboard, LeaderboardRow

ROWS = (
    LeaderboardRow(
        "gcn-row", "both", Score(0.9, 0.8, 0.95), 0.31, 2.0, 3, 3, 0.7, "in the ensemble"
    ),
    LeaderboardRow("mlp-row", "features", Score(0.5, 0.4, 0.6), 1.0, 1.0, 1, 1, 0.0, "dropped"),
    LeaderboardRow("sage", "both", Score(math.nan), math.nan, 0.0, 0, 0, 0.0, "not started"),
)


def test_a_table_for_the_terminal():
    lines = str(Leaderboard(ROWS)).splitlines()
    assert len(lines) == 4
    assert lines[1].split() == [
        "gcn-row",
        "90.0%",
        "80.0",
        "to",
        "95.0",
        "0.310",
        "2.0",
        "3",
        "0.70",
    ]
    assert lines[3].split() == ["sage", "-", "-", "-", "0.0", "0", "-"]


def test_it_is_a_sequence_of_rows():
    board = Leaderboard(ROWS)
    assert len(board) == 3
    assert board[0] is ROWS[0]
    assert [row.candidate for row in board] == ["gcn-row", "mlp-row", "sage"]


def test_json_and_back():
    text = json.dumps(Leaderboard(ROWS).to_list(), allow_nan=False)
    again = Leaderboard.from_list(json.loads(text))
    assert again[:2] == ROWS[:2]
    assert math.isnan(again[2].accuracy.value)


def test_pandas_has_a_row_for_each_candidate():
    frame = Leaderboard(ROWS).to_pandas()
    assert frame["candidate"].tolist() == ["gcn-row", "mlp-row", "sage"]
    assert frame["accuracy_low"][0] == 0.8
