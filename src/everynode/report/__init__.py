"""Self-contained HTML pages and SVG figures of runs and fits. This package computes no result."""
