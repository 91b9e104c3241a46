"""The map draws every point."""

from __future__ import annotations

import re

from everynode.report.scatter import scatter


def test_a_map_draws_every_point_of_a_named_class():
    plot = scatter([[0, 0], [1, 1], [2, 0], [9, 9]], [0, 1, 1, -1], ["a", "b"], label="<map>")
    assert plot.count("h0") == 4
    (faint,) = re.findall(r'<path d="([^"]*)" class="cloud none"', plot)
    assert faint.count("h0") == 1  # the point of no class
    assert 'aria-label="&lt;map&gt;"' in plot
