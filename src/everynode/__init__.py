"""everynode: node classifiers trained on every node, labelled or not."""

__version__ = "0.1.0"
