"""Side by side with stock PyG, in one process and one run. (In the package, so that ``everynode bench`` works wherever it is installed.)"""
