"""Convolutional sparse coding layers whose threshold λ is trained and can follow new images without labels (TA-CSC, SDNet)."""
