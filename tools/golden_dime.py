"""Golden steps of DIME: one training step, and one of the pretraining, in PyTorch, as the reference for Querent's
engines.

The forward pass is written down as the publication states it (Gadgil et al. 2024), with what is acquired blocked and
the entropy as class weights make it; autograd does the rest, in float64, and torch.optim.Adam the update. Everything
random is drawn here as well, as assets/golden/README.md says.

    pip install torch safetensors numpy
    python tools/golden_dime.py check assets/golden/dime_*.safetensors    recompute and compare; exit 1 on a mismatch
    python tools/golden_dime.py make assets/golden                        write the cases in CASES
"""

import math

import torch
import torch.nn.functional as F

import golden
import golden_gdfs as gdfs

CARDINALITY, EXPLORE = 48, 49  # streams of random bits
CHEAPEST = 1e-3  # what a feature costs at least

# As in golden.py: cases that come nearer to a branch are redrawn. `chance`: between ε and what is compared with it.
CLEAR = dict(tie=1e-4, kink=2e-6, chance=1e-4)

CASES = {
    # Unsorted groups of unequal size, two columns that are known from the start, a feature that costs nothing, the
    # second batch of a pass, and about as many choices by chance as by value.
    "dime_step": dict(
        group_of_column=[3, 0, 5, 3, 1, 6, 3, 2, 0, 4, 5, 3], known=2, cost=[1.0, 0.5, 2.0, 1.5, 0.8, 0.0, 1.2],
        d=7, k=4, rows=25, batch=11, classes=3, weighted=True, hidden=(12, 10), epsilon=0.4, dropout=0.3,
        steps=7, epoch=3, turn=1,
    ),
    # The additive rule, to the last feature, without chance and dropout, one hidden layer.
    "dime_price": dict(
        cost=[1.0, 0.2, 3.0, 0.5, 2.0], d=5, k=5, rows=9, batch=9, classes=2, hidden=(9,), price=0.1, steps=4, epoch=4,
    ),
    # The pretraining, with three hidden layers.
    "dime_warm_up": dict(
        section="warm_up", group_of_column=[8, 0, 5, 3, 1, 6, 7, 2, 0, 4, 5, 8], known=1, cost=[1.0] * 9,
        d=9, k=4, rows=20, batch=10, classes=3, weighted=True, hidden=(10, 7, 6), dropout=0.25, steps=2, epoch=1,
    ),
}


def explored(meta, batch, t, d):
    """For each instance at step t: the number that ε is compared with, and one for each feature."""
    step = int(meta["steps"])
    chance = [gdfs.unit(gdfs.bits(meta, EXPLORE, step, i, t, 0)[0]) for i in range(batch)]
    features = [
        [gdfs.unit(gdfs.bits(meta, EXPLORE, step, i, t, 1 + j // 4)[j % 4]) for j in range(d)] for i in range(batch)
    ]
    return torch.tensor(chance), torch.tensor(features, dtype=torch.float64)


def step(inputs, meta):
    """Returns what the step should give, by name without `expect.`, and its margins: how near it came to a branch."""
    t = {name: v.double() if v.is_floating_point() else v.long() for name, v in inputs.items()}
    k, batch, turn = int(meta["k"]), int(meta["batch"]), int(meta["turn"])
    layers = sum(name.startswith("network.") and name.endswith(".bias") for name in t)
    names = [f"network.{i}.{part}" for i in range(layers) for part in ("weight", "bias")]
    params = [t[name].requires_grad_() for name in names]
    cost = t["cost"]
    d, classes = len(cost), len(params[-1]) - len(cost)
    order = torch.tensor(gdfs.shuffled(meta, len(t["x"]))[turn * batch :][:batch])
    x, y = t["x"][order], t["y"][order]
    weight = t.get("class_weight", torch.ones(classes, dtype=torch.float64))
    warm_up = meta["section"] == "warm_up"
    margins = dict.fromkeys(CLEAR, math.inf)

    def near(what, distance):
        margins[what] = min(margins[what], distance.abs().min().item())

    dropout = []
    if float(meta["dropout"]) > 0:
        widths = [len(t[f"network.{i}.bias"]) for i in range(layers - 1)]
        dropout = [
            gdfs.multipliers(meta, i, 1 if warm_up else k + 1, batch, width) for i, width in enumerate(widths)
        ]

    def network(mask, at):
        """The classes' logits, and v of each feature, from common hidden layers."""
        seen = F.pad(mask, (0, 1), value=1.0)  # what belongs to no feature is known from the start
        h = torch.cat([x * seen[:, t["group_of_column"]], mask], dim=1)
        for i in range(layers - 1):
            h = F.linear(h, *params[2 * i : 2 * i + 2])
            near("kink", h)
            h = F.relu(h)
            if dropout:
                h = h * dropout[i][at]
        predictor, value = ([part[at] for part in params[-2:]] for at in (slice(classes), slice(classes, None)))
        return F.linear(h, *predictor), F.linear(h, *value)

    def loss(logits):
        return F.cross_entropy(logits, y, weight=weight, reduction="none")  # weight[y] times −log p

    expect = {"order": order} | {f"dropout.{i}": multiplier for i, multiplier in enumerate(dropout)}
    error = torch.zeros(batch, dtype=torch.float64)
    if warm_up:
        mask = gdfs.cardinality(meta, batch, d, CARDINALITY)
        lost = loss(network(mask.double(), 0)[0])
        expect |= {"mask": mask.long()}
    else:
        hard = torch.zeros(batch, d, dtype=torch.float64)
        logits, v = network(hard, 0)
        before = loss(logits)
        lost, path = before, []
        for at in range(k):
            q = v.sigmoid() * doubt(logits, weight)
            a = choose(meta, at, q.detach(), cost, hard.bool(), near)
            hard = hard + F.one_hot(a, d)
            path.append(a)
            logits, v = network(hard, at + 1)
            after = loss(logits)
            delta = (before - after).detach()
            error = error + (q.gather(1, a[:, None])[:, 0] - delta) ** 2
            lost, before = lost + after, after
        lost, error = lost / (k + 1), error / (k + 1)
        expect |= {"path": torch.stack(path)}
    objective = (lost + error).mean()

    grads = torch.autograd.grad(objective, params)
    weights = [t[name].detach().clone() for name in names]
    adam = torch.optim.Adam(weights, lr=float(meta["rate"]), betas=golden.BETAS, eps=golden.EPSILON)
    for name, value, grad in zip(names, weights, grads):
        value.grad = grad
        adam.state[value] = {
            "step": torch.tensor(float(meta["steps"])),
            "exp_avg": t[f"mean.{name}"].clone(),
            "exp_avg_sq": t[f"variance.{name}"].clone(),
        }
    adam.step()
    expect |= {"objective": objective, "value_error": error.mean()}
    expect |= {f"grad.{name}": grad for name, grad in zip(names, grads)}
    expect |= {f"after.{name}": value for name, value in zip(names, weights)}
    return {name: v.detach() for name, v in expect.items()}, margins


def doubt(logits, weight):
    """What a row is expected to lose: the mean of weight[y] times −log f over the labels that the predictor, trained with
    these weights, takes for likely. Without weights it is the entropy. No gradient goes through it."""
    f = F.softmax(logits.detach(), dim=1)
    p = f / weight
    p = p / p.sum(1, keepdim=True)
    return (p * weight * -f.log()).sum(1, keepdim=True)


def choose(meta, at, q, cost, acquired, near):
    """The best feature for its cost, or one by chance, of those that are not acquired."""
    if meta["price"] == "none":
        scores = q / cost.clamp(min=CHEAPEST)
    else:
        scores = q - float(meta["price"]) * cost
    chance, numbers = explored(meta, len(q), at, len(cost))
    near("chance", chance - float(meta["epsilon"]))
    by_chance = chance < float(meta["epsilon"])
    scores = torch.where(by_chance[:, None], numbers, scores).masked_fill(acquired, -math.inf)
    best = F.pad(scores, (0, 1), value=-math.inf).topk(2).values
    near("tie", (best[:, 0] - best[:, 1]) / best[:, 0].abs().clamp(min=1e-3))
    return scores.argmax(1)


# check and make


def draw(
    seed, *, cost, d, k, rows, batch, classes, hidden, steps, epoch, section="step", group_of_column=None, known=0,
    weighted=False, epsilon=0.0, price=None, dropout=0.0, rate=0.02, turn=0,
):
    """Inputs as the file holds them, f32 and i32, and the metadata."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=rng, dtype=torch.float64)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    group = (group_of_column or list(range(d))) + known * [d]
    tensors = {
        "x": normal(rows, len(group)),
        "y": torch.randint(classes, (rows,), generator=rng),
        "group_of_column": torch.tensor(group),
        "cost": torch.tensor(cost, dtype=torch.float64),
    }
    if weighted:
        tensors["class_weight"] = 0.5 + uniform(classes)
    # Adam's moments, as a few steps with gradients of this size would have left them.
    size, rest = 0.02, [1 - beta**steps for beta in golden.BETAS]
    widths = [len(group) + d, *hidden, classes + d]
    for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
        tensors[f"network.{i}.weight"] = normal(fan_out, fan_in) * math.sqrt(2 / fan_in)
        tensors[f"network.{i}.bias"] = normal(fan_out) * 0.3
        for at in (f"network.{i}.weight", f"network.{i}.bias"):
            tensors[f"mean.{at}"] = rest[0] * size * normal(*tensors[at].shape)
            tensors[f"variance.{at}"] = rest[1] * size**2 * (0.5 + uniform(*tensors[at].shape))
    meta = dict(
        method="dime", section=section, k=k, batch=batch, epsilon=epsilon, price="none" if price is None else price,
        dropout=dropout, rate=rate, seed=(6 << 32) + 1000 + seed, steps=steps, epoch=epoch, turn=turn,
    )
    stored = {n: v.float() if v.is_floating_point() else v.int() for n, v in tensors.items()}
    return stored, {n: str(v) for n, v in meta.items()}


if __name__ == "__main__":
    gdfs.main("DIME", step, draw, CASES, CLEAR)
