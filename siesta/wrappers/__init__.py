"""A learner as an estimator of scikit-learn (`siesta.wrappers.sklearn`) and of River (`siesta.wrappers.river`)."""
