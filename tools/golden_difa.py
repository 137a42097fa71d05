"""Golden steps of DiFA: one training step, and one of the pretraining, in PyTorch, as the reference for Querent's
engines.

The rollout is written down as the publication states it (Ghosh & Lan 2023): the choice is hard on the way forward and
relaxed on the way back. Autograd does the rest, in float64, and torch.optim.Adam the update, with a rate for each network.
What is random is drawn as for GDFS, with one noise instead of two.

    pip install torch safetensors numpy
    python tools/golden_difa.py check assets/golden/difa_*.safetensors    recompute and compare; exit 1 on a mismatch
    python tools/golden_difa.py make assets/golden                        write the cases in CASES
"""

import math

import torch
import torch.nn.functional as F

import golden_gdfs as gdfs

CASES = {
    # Unsorted groups of unequal size, two columns that are known from the start, the second batch of a pass.
    "difa_step": dict(
        group_of_column=[3, 0, 5, 3, 1, 6, 3, 2, 0, 4, 5, 3], known=2,
        d=7, k=4, rows=25, batch=11, classes=3, weighted=True, hidden=(12, 10),
        temperature=0.7, dropout=0.3, steps=7, epoch=3, turn=1,
    ),
    # Cold, to the last feature, without dropout, one hidden layer.
    "difa_plain": dict(d=5, k=5, rows=9, batch=9, classes=2, hidden=(9,), temperature=0.2, steps=4, epoch=4),
    # The pretraining, with three hidden layers: the selector is left alone.
    "difa_warm_up": dict(
        section="warm_up", group_of_column=[8, 0, 5, 3, 1, 6, 7, 2, 0, 4, 5, 8], known=1,
        d=9, k=4, rows=20, batch=10, classes=3, weighted=True, hidden=(10, 7, 6), dropout=0.25, steps=2, epoch=1,
    ),
}


def rollout(k, meta, noise, selector, loss, near, shape):
    """k losses on what the sampled features reveal, each with the gradient of its own relaxed choice."""
    mask = torch.zeros(*shape, dtype=torch.float64)
    total, path = 0.0, []
    for at in range(k):
        noisy = selector(mask).masked_fill(mask.bool(), -math.inf) + noise[at]
        soft = F.softmax(noisy / float(meta["temperature"]), dim=1)
        best = F.pad(noisy.detach(), (0, 1), value=-math.inf).topk(2)
        near("tie", best.values[:, 0] - best.values[:, 1])
        hard = F.one_hot(best.indices[:, 0], shape[1])
        # The value is that of the hard choice, the gradient that of the soft one.
        total = total + loss(mask + hard + (soft - soft.detach()), at + 1) / k
        mask = mask + hard
        path.append(best.indices[:, 0])
    return total.mean(), torch.stack(path)


def step(inputs, meta):
    return gdfs.step(inputs, meta, rollout, states=1, noises=1, groups=2)


def draw(seed, *, selector_rate=0.03, predictor_rate=0.02, **spec):
    tensors, meta = gdfs.draw(seed, **spec)
    del meta["gamma"], meta["rate"]
    return tensors, meta | dict(method="difa", selector_rate=str(selector_rate), predictor_rate=str(predictor_rate))


if __name__ == "__main__":
    gdfs.main("DiFA", step, draw, CASES, gdfs.CLEAR)
