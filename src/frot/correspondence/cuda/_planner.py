"""Plans of pairs on a device, in half precision, as accurate as was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from frot._base.validate import check_prior, check_weights
from frot.correspondence._feature_map import FeatureMap
from frot.correspondence._grid_costs import check_maps, layer_costs
from frot.correspondence._layer_plan import LayerPlan, check_steps, paper_plan
from frot.correspondence.cuda.pair import PairSteps

__all__ = ["PairPlanner"]

# Sweeps a step at most before single precision has to do it.
MOST_SWEEPS = 160


@dataclass
class PairPlanner:
    """The paper's plan of one pair after another, on a CUDA device (or any other, more slowly).

    Buffers are kept for pairs of the same shapes, and from the second of them on everything is
    replayed as one CUDA graph. Where the sweeps do not bring the columns within `tol` there are
    more of them; where half precision cannot, single precision does it.

    Parameters
    ----------
    eta, eps : float
        Both > 0.
    steps : int
        T.
    tol : float
        L1 error of the plan's columns.
    sweeps : int
        Sinkhorn's sweeps in each step at first.
    grid_of : int
        The layer whose cells are matched.
    device : str or torch device
    kernels : {"triton", "torch"}, optional
        Triton's where there are any, if left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> maps = [FeatureMap(str(h), rng.normal(size=(64, h, h)), 16 / h, 1) for h in (4, 2)]
    >>> found = PairPlanner(device="cpu")(maps, maps)
    >>> found.plan.argmax(dim=1).tolist() == list(range(16)), found.error <= 1e-3
    (True, True)
    """

    eta: float = 0.3
    eps: float = 0.1
    steps: int = 3
    tol: float = 1e-3
    sweeps: int = 10
    grid_of: int = 0
    device: Any = "cuda"
    kernels: str | None = None
    _kept: Any = field(default=None, init=False, repr=False)

    def __call__(
        self,
        source: Sequence[FeatureMap],
        target: Sequence[FeatureMap],
        a: Any = None,
        b: Any = None,
        prior: Any = None,
    ) -> LayerPlan:
        """Return the plan; its matrix stays on the device, and is the caller's to keep."""
        check_maps(source, target, self.grid_of)
        check_steps(self.eta, self.eps, self.steps)
        work = self._steps(source, target)
        n, m = work.shape
        weights = check_weights(a, n, "a", True), check_weights(b, m, "b", True)
        log_prior = check_prior(prior, len(source))
        work.put([one.values for one in source], [one.values for one in target])
        work.a[:n] = torch.as_tensor(weights[0])
        work.b[:m] = torch.as_tensor(weights[1])
        known = np.zeros(len(source)) if log_prior is None else log_prior
        work.log_prior[:] = torch.as_tensor(known[work.order])
        work.run()
        used, error = work.sweeps, work.error
        while not error <= self.tol and used < MOST_SWEEPS:
            used *= 4
            work.take_steps(used, afresh=True)
            error = work.error
        if not error <= self.tol:
            costs = layer_costs(source, target, grid_of=self.grid_of, device=self.device)
            return paper_plan(
                costs, *weights, eta=self.eta, eps=self.eps, prior=prior, steps=self.steps,
                tol=self.tol,
            )  # fmt: skip
        back = np.argsort(work.order)
        alpha, phi = (x.double().cpu().numpy()[back] for x in (work.alpha, work.phi))
        return LayerPlan(work.plan.clone(), alpha, phi, error, used * self.steps)

    def _steps(self, source: Sequence[FeatureMap], target: Sequence[FeatureMap]) -> PairSteps:
        """Return the buffers for maps of these shapes, captured once they come again."""
        shapes = [[tuple(one.values.shape) for one in maps] for maps in (source, target)]
        terms = (self.eta, self.eps, self.steps, self.sweeps, self.grid_of, self.kernels)
        key = (shapes, terms, str(self.device))
        if self._kept is None or self._kept[0] != key:
            # The old buffers go first: two sets may not fit.
            self._kept = None
            work = PairSteps(
                *shapes, eta=self.eta, eps=self.eps, steps=self.steps, sweeps=self.sweeps,
                grid_of=self.grid_of, device=self.device, kernels=self.kernels,
            )  # fmt: skip
            self._kept = (key, work)
            return work
        work = self._kept[1]
        if work.graph is None and work.device.type == "cuda":
            work.capture()
        return work

    def __getstate__(self) -> dict[str, Any]:
        # Buffers stay where they are.
        return {**self.__dict__, "_kept": None}
