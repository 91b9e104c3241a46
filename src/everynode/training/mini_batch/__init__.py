"""Training on a part of the graph at a time, in one process or several."""
