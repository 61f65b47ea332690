"""Losses on logit distances, and whether a probability can be believed."""
