"""CAR, the confusion-aware spectral regularizer: soft confusion, its memory over batches, its largest singular value, and the spectrum of
any confusion matrix (METHODS section 3).
"""

from core.car.metrics import Figures, confusion, figures_of, groups_of, predictions_of, recalls, survival
from core.car.regularizer import CAR
from core.car.soft_confusion import soft_confusion, soft_flow
from core.car.spectrum import Bound, Flow, Spectrum, error_rates
from core.car.weights import class_weights

__all__ = [
    "CAR",
    "Bound",
    "Figures",
    "Flow",
    "Spectrum",
    "class_weights",
    "confusion",
    "error_rates",
    "figures_of",
    "groups_of",
    "predictions_of",
    "recalls",
    "soft_confusion",
    "soft_flow",
    "survival",
]
