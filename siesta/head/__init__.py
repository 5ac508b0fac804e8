"""The head: from features z to scores of classes, by a trained cosine softmax or by a linear discriminant."""

from siesta.head.cosine import Head
from siesta.head.discriminant import Discriminant
from siesta.head.statistics import FeatureStatistics

__all__ = ["Discriminant", "FeatureStatistics", "Head"]
