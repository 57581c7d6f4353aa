"""Upper bounds: classifiers that see all samples at once, as no device can."""

from collections.abc import Sequence
from typing import Any

import numpy as np

NAMES = ("offline-lda", "offline-logistic")


def fit(name: str, X: np.ndarray, words: Sequence[str]) -> Any:
    """Fit scikit-learn's classifier on X (n, D), features standardised.

    Parameters
    ----------
    name
        "offline-lda" (Ledoit-Wolf shrinkage) or "offline-logistic" (L2, C = 0.1).
    X, words
        All samples.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "offline-lda":
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    else:
        model = LogisticRegression(C=0.1, max_iter=200, tol=1e-3)
    return make_pipeline(StandardScaler(), model).fit(X, list(words))
