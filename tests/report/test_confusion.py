"""The confusion matrix: rows are true classes, shades are shares of a row."""

from __future__ import annotations

import re

from everynode.report.confusion import confusion_table


def test_shades_are_shares_of_a_row_and_names_are_escaped():
    drawn = confusion_table([[3, 1], [0, 0]], ["<a>", "b"], "The test nodes.")
    assert re.findall(r"--s:(\d+)%", drawn) == ["75", "25"]
    assert re.findall(r"<td[^>]*>(\d+)", drawn) == ["3", "1", "0", "0"]
    assert "&lt;a&gt;" in drawn
    assert "The test nodes. Rows are true classes" in drawn
