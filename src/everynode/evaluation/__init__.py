"""How good predictions are: metrics, intervals, calibration, and the table of predictions."""
