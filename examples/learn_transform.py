"""Learn how every feature of a cloud was scaled and shifted, by descending on FRWDLoss.

A corrupted cloud is x = (z - shift) / scale, where z are the clean points with a little noise, in
another order: no pairs are known. Adam moves a scale and a shift per feature until the transformed
cloud lies on the clean one.

    python examples/learn_transform.py --plot learned.png
"""

from __future__ import annotations

import argparse

import torch

import frot.torch

FEATURES = 6
# Two features a group: an error in any one group is what the loss shows, not the average.
GROUPS = [2, 2, 2]


class Transform(torch.nn.Module):
    """One scale and one shift per feature."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.log_scale = torch.nn.Parameter(torch.zeros(features, dtype=torch.float64))
        self.shift = torch.nn.Parameter(torch.zeros(features, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.log_scale.exp() + self.shift


def draw(points: int, seed: int) -> torch.Tensor:
    """Points of a skewed distribution, so that scales and shifts are told apart."""
    made = torch.Generator().manual_seed(seed)
    return torch.randn(points, FEATURES, generator=made, dtype=torch.float64).exp().sqrt()


def learn(points: int = 80, steps: int = 120, rate: float = 0.08, every: int = 20) -> dict:
    """Train; return the losses and how far scales and shifts are from the true ones."""
    clean = draw(points, 0)
    shuffled = clean.flip(0) + 0.02 * draw(points, 1)
    scale = torch.linspace(0.5, 2.0, FEATURES, dtype=torch.float64)
    shift = torch.linspace(1.0, -1.0, FEATURES, dtype=torch.float64)
    corrupted = (shuffled - shift) / scale
    model = Transform(FEATURES)
    # eps is a number here: a share of the cost would shrink as the clouds meet.
    loss = frot.torch.FRWDLoss(GROUPS, eta=0.05, eps=0.1, debias=True, tol=1e-3)
    adam = torch.optim.Adam(model.parameters(), lr=rate)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    losses = []
    for step in range(steps):
        adam.zero_grad()
        value = loss(model(corrupted), clean)
        value.backward()
        adam.step()
        decay.step()
        losses.append(value.item())
        if step % every == 0 or step == steps - 1:
            weights = ", ".join(f"{weight:.2f}" for weight in loss.result.alpha)
            print(f"step {step:4d}   loss {losses[-1]:9.5f}   weights of the groups {weights}")
    with torch.no_grad():
        scale_error = (model.log_scale.exp() / scale - 1.0).abs().max().item()
        shift_error = (model.shift - shift).abs().max().item()
    print(f"scales are within {scale_error:.1%} of the true ones, shifts within {shift_error:.3f}")
    return {
        "losses": losses,
        "scale_error": scale_error,
        "shift_error": shift_error,
        "clouds": (corrupted, model(corrupted).detach(), clean),
    }


def plot(found: dict, path: str) -> None:
    """Draw the loss, and the first two features before and after."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    left.semilogy(found["losses"])
    left.set(xlabel="step", ylabel="debiased FRWD")
    names = ("corrupted", "transformed", "clean")
    for cloud, name in zip(found["clouds"], names, strict=True):
        right.scatter(cloud[:, 0], cloud[:, 1], s=8, label=name)
    right.set(xlabel="feature 0", ylabel="feature 1")
    right.legend()
    figure.savefig(path, bbox_inches="tight")
    plt.close(figure)
    print(f"wrote {path}")


def main(arguments: list[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--points", type=int, default=80)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--plot", metavar="FILE", help="draw the loss and the clouds")
    options = parser.parse_args(arguments)
    found = learn(options.points, options.steps)
    if options.plot:
        plot(found, options.plot)
    return found


if __name__ == "__main__":
    main()
