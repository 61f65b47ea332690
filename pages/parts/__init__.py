"""Pieces that several pages share. They draw and remember; what is computed comes from `core.lab`."""
