"""The local web application: look at a graph, label nodes, retrain, export."""
