"""Runs and their records, the store that keeps them, statistics over them, and what is made of them."""
