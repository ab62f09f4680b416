"""
In a pipeline, with a grid search
=================================

``FROTSelector`` is a scikit-learn selector: it passes ``check_estimator``, and so it goes into
pipelines, grid searches and ``set_output``. The number of features is a parameter like any other.

Selection has to be *inside* the cross-validation. Selecting on all samples first and validating
afterwards lets the test samples take part in the selection, and the accuracy is too good: with
enough genes, even on labels that mean nothing.

This page shows both: an honest grid search over the number of genes, and the same on shuffled
labels, inside and outside of the cross-validation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frot.selection import FROTSelector

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A8A8A"

# %%
# 80 samples, 1,000 genes, 12 of which differ.

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 1000))
y = np.repeat(["tumour", "normal"], 40)
X[np.ix_(y == "tumour", np.arange(12))] += 0.9
counts = [1, 2, 5, 10, 20, 50, 100, 300, 1000]
folds = StratifiedKFold(5, shuffle=True, random_state=0)

# %%
# ``plan=False`` leaves the transport plan out, which the ranking does not need.

pipeline = make_pipeline(
    FROTSelector(plan=False), StandardScaler(), LogisticRegression(max_iter=1000)
)
search = GridSearchCV(pipeline, {"frotselector__n_features_to_select": counts}, cv=folds)
search.fit(X, y)
best = search.best_params_["frotselector__n_features_to_select"]
kept = search.best_estimator_["frotselector"].get_support(indices=True)
print(f"best: {best} genes, of which {np.sum(kept < 12)} differ in truth")

# %%
# The same with labels that are shuffled, so that nothing can be learned: once with the selection in
# the pipeline, and once with the selection before the cross-validation, which is wrong.

shuffled = rng.permutation(y)
classify = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
inside, outside = [], []
for count in counts:
    selector = FROTSelector(count, plan=False)
    inside.append(cross_val_score(make_pipeline(selector, classify), X, shuffled, cv=folds).mean())
    chosen = selector.fit_transform(X, shuffled)
    outside.append(cross_val_score(classify, chosen, shuffled, cv=folds).mean())

# %%
# The honest curve has its best where the genes that differ are found and little else. On shuffled
# labels the pipeline says one half, as it should. Selection before the cross-validation promises up
# to full accuracy on labels that mean nothing.

figure, axes = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
mean, spread = (search.cv_results_[f"{which}_test_score"] for which in ("mean", "std"))
axes.errorbar(
    counts, mean, spread / np.sqrt(5), fmt="o-", color=BLUE, capsize=3, label="grid search"
)
axes.plot(counts, outside, "s--", color=ORANGE, label="shuffled labels, selected before (wrong)")
axes.plot(counts, inside, "o-", color=GREY, label="shuffled labels, in the pipeline")
axes.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
axes.axvline(best, color=BLUE, linewidth=0.8, linestyle=":")
axes.set(xscale="log", xlabel="genes selected", ylabel="accuracy, 5-fold", ylim=(0.15, 1.03))
axes.set_xticks(counts, counts)
axes.minorticks_off()
axes.legend(frameon=False, loc="lower left")
plt.show()
