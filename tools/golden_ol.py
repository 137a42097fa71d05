"""Golden steps of OL: one training step, episodes and updates, and one of the pretraining, in PyTorch, as the reference for
Querent's engines.

The two branches are written down as the publication states them (Kachuee et al. 2019), each layer of the value branch on the
concatenation of its own and the predicting branch's, detached; the rest as src/methods/ol/mod.rs says. Autograd does the
gradients, in float64, and torch.optim.Adam the updates. Everything random is drawn here as well, as assets/golden/README.md
says.

    pip install torch safetensors numpy
    python tools/golden_ol.py check assets/golden/ol_*.safetensors    recompute and compare; exit 1 on a mismatch
    python tools/golden_ol.py make assets/golden                      write the cases in CASES
"""

import math

import torch
import torch.nn.functional as F

import golden
import golden_gdfs as gdfs

CARDINALITY, EXPLORE, REPLAY = 80, 81, 82  # streams of random bits
CHEAPEST = 1e-3  # what a feature costs at least where something is divided by it

# As in golden.py: cases that come nearer to a branch are redrawn. `chance`: between ε and what is compared with it.
CLEAR = dict(tie=1e-4, kink=2e-6, chance=1e-4)

CASES = {
    # Unsorted groups of unequal size, two columns that are known from the start, a feature that costs nothing, the
    # second batch of a pass, as many actions by chance as by value, two updates, and a memory that goes round.
    "ol_step": dict(
        group_of_column=[3, 0, 5, 3, 1, 6, 3, 2, 0, 4, 5, 3], known=2, cost=[1.0, 0.5, 2.0, 1.5, 0.8, 0.0, 1.2],
        d=7, k=4, rows=25, batch=11, classes=3, weighted=True, hidden=(7, 5), epsilon=0.4, dropout=0.3,
        alpha=0.1, gamma=0.9, updates=2, rounds=2, kept=3, steps=7, epoch=3, turn=1,
    ),
    # The original's reward, to the last feature, one hidden layer; the memory is not yet full.
    "ol_confidence": dict(
        cost=[1.0, 0.2, 0.0, 0.5, 2.0], d=5, k=5, rows=9, batch=9, classes=2, hidden=(6,), reward="confidence",
        epsilon=0.2, dropout=0.2, gamma=0.5, samples=3, updates=1, rounds=3, kept=1, steps=4, epoch=4,
    ),
    # The pretraining, with three hidden layers.
    "ol_warm_up": dict(
        section="warm_up", group_of_column=[8, 0, 5, 3, 1, 6, 7, 2, 0, 4, 5, 8], known=1, cost=[1.0] * 9,
        d=9, k=4, rows=20, batch=10, classes=3, weighted=True, hidden=(5, 4, 3), dropout=0.25, steps=2, epoch=1,
    ),
}


class Branches:
    """Both branches, from tensors that have the predicting one's units first."""

    def __init__(self, params, classes, near):
        self.layers = list(zip(params[::2], params[1::2]))
        self.split = [len(bias) // 2 for _, bias in self.layers[:-1]] + [classes]
        self.near = near

    def __call__(self, x, dropout=None):
        """The classes' logits, and Q of each feature and of stopping. `dropout` has the multipliers of P's hidden layers."""
        p, q, read = x, x, x.shape[1]
        for i, ((weight, bias), out) in enumerate(zip(self.layers, self.split)):
            # Below the first layer Q reads P, detached, then itself.
            both = torch.cat([p.detach(), q], dim=1) if i > 0 else x
            p = F.linear(p, weight[:out, :read], bias[:out])
            q = F.linear(both, weight[out:], bias[out:])
            read = out
            if i + 1 < len(self.layers):
                self.near("kink", p)
                self.near("kink", q)
                p, q = F.relu(p), F.relu(q)
                if dropout is not None:
                    p = p * dropout[i]
        return p, q


def step(inputs, meta):
    """Returns what the step should give, by name without `expect.`, and its margins: how near it came to a branch."""
    t = {name: v.double() if v.is_floating_point() else v.long() for name, v in inputs.items()}
    batch, turn = int(meta["batch"]), int(meta["turn"])
    layers = sum(name.startswith("network.") and name.endswith(".bias") for name in t)
    names = [f"network.{i}.{part}" for i in range(layers) for part in ("weight", "bias")]
    params = [t[name].requires_grad_() for name in names]
    slow = [t[f"average.{name}"].clone() for name in names]
    d, classes = len(t["cost"]), len(params[-1]) - len(t["cost"]) - 1
    order = torch.tensor(gdfs.shuffled(meta, len(t["x"]))[turn * batch :][:batch])
    weight = t.get("class_weight", torch.ones(classes, dtype=torch.float64))
    margins = dict.fromkeys(CLEAR, math.inf)

    def near(what, distance):
        margins[what] = min(margins[what], distance.abs().min().item())

    network, target = Branches(params, classes, near), Branches(slow, classes, lambda *_: None)
    adam = torch.optim.Adam(params, lr=float(meta["rate"]), betas=golden.BETAS, eps=golden.EPSILON)
    for name, value in zip(names, params):
        adam.state[value] = {
            "step": torch.tensor(float(meta["steps"])),
            "exp_avg": t[f"mean.{name}"].clone(),
            "exp_avg_sq": t[f"variance.{name}"].clone(),
        }

    def seen(rows, mask):
        shown = F.pad(mask, (0, 1), value=1.0)  # what belongs to no feature is known from the start
        return torch.cat([t["x"][rows] * shown[:, t["group_of_column"]], mask], dim=1)

    def dropout(states, at, drawn=2):
        """Multipliers of P's units, `[states, batch, width]` each layer. Q has none, but updates draw for both."""
        if float(meta["dropout"]) == 0:
            return None
        widths = list(enumerate(network.split[:-1]))
        return [gdfs.multipliers(meta, i, states, batch, drawn * w, at)[..., :w] for i, w in widths]

    def one(of):
        return None if of is None else [multiplier[0] for multiplier in of]

    def learn(loss):
        adam.zero_grad()
        loss.backward()
        adam.step()
        with torch.no_grad():
            for average, value in zip(slow, params):
                average += float(meta["polyak"]) * (value - average)

    expect = {"order": order}
    if meta["section"] == "warm_up":
        mask = gdfs.cardinality(meta, batch, d, CARDINALITY)
        last = dropout(1, 0)
        logits, _ = network(seen(order, mask.double()), one(last))
        objective = F.cross_entropy(logits, t["y"][order], weight=weight, reduction="none").mean()
        learn(objective)
        expect |= {"mask": mask.long(), "objective": objective, "value_error": torch.zeros(())}
    else:
        path = rollout(meta, network, seen, order, d, near)
        rewards = beliefs(meta, network, seen, order, path, dropout, t["cost"]) if "samples" in meta else None
        memory = remember(meta, t, order, path, rewards)
        means = []
        for update in range(int(meta["updates"])):
            last = dropout(1, update)
            lost, error = values(meta, t, update, memory, (network, target), seen, one(last), weight, near)
            learn((lost + error).mean())
            means.append(torch.stack([(lost + error).mean(), error.mean()]).detach())
        objective, error = torch.stack(means).mean(0)
        expect |= {"path": path, "objective": objective, "value_error": error}
    if last is not None:
        ones = [torch.cat([multiplier, torch.ones_like(multiplier)], dim=-1) for multiplier in last]
        expect |= {f"dropout.{i}": multiplier for i, multiplier in enumerate(ones)}
    expect |= {f"grad.{name}": value.grad for name, value in zip(names, params)}
    expect |= {f"after.{name}": value for name, value in zip(names, params)}
    expect |= {f"slow.{name}": value for name, value in zip(names, slow)}
    return {name: v.detach() for name, v in expect.items()}, margins


def stops(meta):
    return meta["reward"] == "loss"


@torch.no_grad()
def rollout(meta, network, seen, order, d, near):
    """ε-greedy episodes, `[k, batch]`; `d` is stopping, and whoever has stopped goes on doing so."""
    batch, at = len(order), int(meta["steps"])
    mask, path = torch.zeros(batch, d, dtype=torch.float64), []
    stopped = torch.zeros(batch, dtype=torch.bool)
    for t in range(int(meta["k"])):
        q = network(seen(order, mask))[1]
        drawn = [[gdfs.bits(meta, EXPLORE, at, i, t, block) for block in range(2 + d // 4)] for i in range(batch)]
        chance = torch.tensor([gdfs.unit(row[0][0]) for row in drawn])
        near("chance", chance - float(meta["epsilon"]))
        by_chance = chance < float(meta["epsilon"])
        numbers = torch.tensor([[gdfs.unit(row[1 + j // 4][j % 4]) for j in range(d + 1)] for row in drawn])
        q = torch.where(by_chance[:, None], numbers.double(), q)
        q[:, :d] = q[:, :d].masked_fill(mask.bool(), -math.inf)
        if not stops(meta):
            q[:, d] = -math.inf
        best = F.pad(q, (0, 1), value=-1e9).topk(2).values
        near("tie", best[:, 0] - best[:, 1])
        a = torch.where(stopped, d, q.argmax(1))
        stopped = a == d
        mask = mask + F.one_hot(a, d + 1)[:, :d]
        path.append(a)
    return torch.stack(path)


@torch.no_grad()
def beliefs(meta, network, seen, order, path, dropout, cost):
    """The original's reward: what each answer changed in the mean belief over samples of dropout, for its cost."""
    k, d, samples = len(path), len(cost), int(meta["samples"])
    masks = [torch.zeros(len(order), d, dtype=torch.float64)]
    for a in path:
        masks.append(masks[-1] + F.one_hot(a, d))
    mean = 0
    for sample in range(samples):
        multipliers = dropout(k + 1, int(meta["updates"]) + sample, drawn=1)
        states = [network(seen(order, m), [layer[i] for layer in multipliers])[0] for i, m in enumerate(masks)]
        mean = mean + F.softmax(torch.stack(states), dim=-1) / samples
    return (mean[1:] - mean[:-1]).abs().sum(-1) / cost.clamp(min=CHEAPEST)[path]


def remember(meta, t, order, path, rewards):
    """The memory with the new episodes over the oldest: rows, paths, rewards, and how many episodes it has."""
    batch, rounds, kept = len(order), int(meta["rounds"]), int(meta["kept"])
    episodes = t["buffer.replay.episodes"].reshape(rounds * batch, -1).clone()
    at = slice(kept % rounds * batch, (kept % rounds + 1) * batch)
    episodes[at] = torch.cat([order[:, None], path.T], dim=1)
    earned = None
    if rewards is not None:
        earned = t["buffer.replay.earned"].reshape(rounds * batch, -1).clone()
        earned[at] = rewards.T
    return episodes[:, 0], episodes[:, 1:], earned, min(kept + 1, rounds) * batch


def values(meta, t, update, memory, networks, seen, dropout, weight, near):
    """Draws transitions; the predictor's losses in their states, and what the values of their actions are wrong by."""
    (network, target), (rows, paths, earned, filled) = networks, memory
    k, d, batch = paths.shape[1], len(t["cost"]), int(meta["batch"])
    drawn = [gdfs.bits(meta, REPLAY, int(meta["steps"]), i, update, 0) for i in range(batch)]
    place, before, after, action, held, kept = [], [], [], [], [], []
    for words in drawn:
        episode = words[0] % filled
        actions = paths[episode].tolist()
        if stops(meta):
            actions = (actions + [d])[: (actions + [d]).index(d) + 1]
        at = words[1] % len(actions)
        mask = F.one_hot(torch.tensor(actions[:at], dtype=torch.long), d).sum(0).double()
        place.append(rows[episode].item())
        before.append(mask)
        after.append(mask + F.one_hot(torch.tensor(actions[at]), d + 1)[:d])
        action.append(actions[at])
        held.append(at + 1)
        kept.append(earned[episode, at] if earned is not None else torch.zeros((), dtype=torch.float64))
    action, held, kept = torch.tensor(action), torch.tensor(held), torch.stack(kept)
    before, after = torch.stack(before), torch.stack(after)
    logits, q = network(seen(place, before), dropout)
    lost = F.cross_entropy(logits, t["y"][place], weight=weight, reduction="none")
    with torch.no_grad():
        open_ = F.pad(after < 0.5, (0, 1), value=stops(meta))
        open_[:, :d] &= (held < k)[:, None]
        best = network(seen(place, after))[1].masked_fill(~open_, -math.inf)
        top = best.topk(2).values
        near("tie", (top[:, 0] - top[:, 1]).nan_to_num(nan=1.0, posinf=1.0))
        later = target(seen(place, after))[1].gather(1, best.argmax(1)[:, None])[:, 0]
        later = float(meta["gamma"]) * torch.where(open_.any(1), later, 0.0)
        cost = F.pad(t["cost"], (0, 1))[action]
        reward = -float(meta["alpha"]) * cost if stops(meta) else kept
        y = torch.where(action == d, -lost, later + reward)
    return lost, (q.gather(1, action[:, None])[:, 0] - y) ** 2


# check and make


def draw(
    seed, *, cost, d, k, rows, batch, classes, hidden, steps, epoch, section="step", group_of_column=None, known=0,
    weighted=False, reward="loss", epsilon=0.0, alpha=0.0, gamma=1.0, dropout=0.0, samples=0, updates=1, rounds=1,
    kept=0, polyak=0.05, rate=0.02, turn=0,
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
    widths = [len(group) + d, *(2 * width for width in hidden), classes + d + 1]
    split = [len(group) + d, *hidden, classes]
    for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
        live = torch.ones(fan_out, fan_in, dtype=torch.float64)
        if i > 0:
            live[: split[i + 1], split[i] :] = 0.0  # P does not read Q
        for at, shape, mask in (("weight", (fan_out, fan_in), live), ("bias", (fan_out,), 1.0)):
            name = f"network.{i}.{at}"
            scale = math.sqrt(2 / fan_in) if at == "weight" else 0.3
            tensors[name] = normal(*shape) * scale * mask
            tensors[f"average.{name}"] = tensors[name] + 0.1 * scale * normal(*shape) * mask
            tensors[f"mean.{name}"] = rest[0] * size * normal(*shape) * mask
            tensors[f"variance.{name}"] = rest[1] * size**2 * (0.5 + uniform(*shape)) * mask
    if section == "step":
        # Episodes of earlier steps; those of the loss's reward end somewhere.
        paths = torch.stack([torch.randperm(d, generator=rng)[:k] for _ in range(rounds * batch)])
        if reward == "loss":
            end = torch.randint(k + 3, (rounds * batch, 1), generator=rng)
            paths = torch.where(torch.arange(k) >= end, d, paths)
        places = torch.randint(rows, (rounds * batch, 1), generator=rng)
        tensors["buffer.replay.episodes"] = torch.cat([places, paths], dim=1)
        tensors["buffer.replay.kept"] = torch.tensor([kept])
        if reward == "confidence":
            tensors["buffer.replay.earned"] = uniform(rounds * batch, k)
    meta = dict(
        method="ol", section=section, reward=reward, k=k, batch=batch, epsilon=epsilon, alpha=alpha, gamma=gamma,
        dropout=dropout, updates=updates, rounds=rounds, kept=kept, polyak=polyak, rate=rate,
        seed=(7 << 32) + 1000 + seed, steps=steps, epoch=epoch, turn=turn,
    )
    if samples:
        meta["samples"] = samples
    stored = {n: v.float() if v.is_floating_point() else v.int() for n, v in tensors.items()}
    return stored, {n: str(v) for n, v in meta.items()}


if __name__ == "__main__":
    gdfs.main("OL", step, draw, CASES, CLEAR)
