"""Plumbline's library: four methods that say what a vision model can promise. It knows no user interface."""
