"""Base networks, how they are trained, their weights and their cards."""
