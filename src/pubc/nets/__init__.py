"""The classifier network, one minibatch loop, and weights on disk.

Nothing here touches torch's global random state: weights and batches come from the
generator that is passed in, so a network is a pure function of its data and its key.
"""

from pubc.nets.adam import Adam, GroupedAdam
from pubc.nets.classifier import BLOCK, Classifier, FoldedClassifier, initialise
from pubc.nets.files import load_tensors, save_tensors
from pubc.nets.fit import Schedule, fit_classifier, pick_device
from pubc.nets.normalise import CLIP, Normaliser

__all__ = [
    "BLOCK",
    "CLIP",
    "Adam",
    "Classifier",
    "FoldedClassifier",
    "GroupedAdam",
    "Normaliser",
    "Schedule",
    "fit_classifier",
    "initialise",
    "load_tensors",
    "pick_device",
    "save_tensors",
]
