"""Golden steps of GDFS: one training step, and one of the pretraining, in PyTorch, as the reference for Querent's
engines.

The forward pass is written down as the publication states it (Covert et al. 2023), with what is acquired blocked;
autograd does the rest, in float64, and torch.optim.Adam the update. Everything random is drawn here as well: the
order of the rows, the noise, dropout and the pretraining's masks, from the seed, as assets/golden/README.md says.

    pip install torch safetensors numpy
    python tools/golden_gdfs.py check assets/golden/gdfs_*.safetensors    recompute and compare; exit 1 on a mismatch
    python tools/golden_gdfs.py make assets/golden                        write the cases in CASES
"""

import argparse
import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

import golden

NETS = ("selector", "predictor")
EXACT = ("order", "path", "mask")  # whole numbers
GUMBEL, DROPOUT, SHUFFLE, CARDINALITY = 1, 2, 5, 16  # streams of random bits; dropout has one a layer

# As in golden.py: cases that come nearer to a branch are redrawn.
CLEAR = dict(tie=1e-4, kink=2e-6)

CASES = {
    # Unsorted groups of unequal size, two columns that are known from the start, the second batch of a pass.
    "gdfs_step": dict(
        group_of_column=[3, 0, 5, 3, 1, 6, 3, 2, 0, 4, 5, 3], known=2,
        d=7, k=4, rows=25, batch=11, classes=3, weighted=True, hidden=(12, 10),
        temperature=0.7, gamma=0.5, dropout=0.3, steps=7, epoch=3, turn=1,
    ),
    # Cold, to the last feature, without dropout, one hidden layer.
    "gdfs_plain": dict(
        d=5, k=5, rows=9, batch=9, classes=2, hidden=(9,), temperature=0.2, gamma=0.2, steps=4, epoch=4,
    ),
    # The pretraining, with three hidden layers and more features than two draws have words.
    "gdfs_warm_up": dict(
        section="warm_up", group_of_column=[8, 0, 5, 3, 1, 6, 7, 2, 0, 4, 5, 8], known=1,
        d=9, k=4, rows=20, batch=10, classes=3, weighted=True, hidden=(10, 7, 6), dropout=0.25, steps=2, epoch=1,
    ),
}


# Random numbers


def bits(meta, stream, step, instance, t, block):
    """Four words, a pure function of what they are for."""
    seed = int(meta["seed"])
    return golden.threefry((seed % 2**32, seed >> 32, stream, step), (instance, t, block, 0))


def unit(word):
    return ((word >> 9) + 0.5) / 2**23


def gumbel(meta, batch, width, noises=2):
    """k rows of noise for the relaxed choices of a rollout, then k for the sampled ones where they have their own."""
    quarter = -(-width // 4)

    def row(t, instance):
        drawn = [bits(meta, GUMBEL, int(meta["steps"]), instance, t, block) for block in range(quarter)]
        words = [drawn[at % quarter][at // quarter] for at in range(width)]
        return [-math.log(-math.log(unit(word))) for word in words]

    return torch.tensor([[row(t, i) for i in range(batch)] for t in range(noises * int(meta["k"]))], dtype=torch.float64)


def multipliers(meta, layer, steps, batch, width, turn=0):
    """Dropout: 16 bits a unit; each turn of a step that draws several times has a stream of its own."""
    threshold = round(float(meta["dropout"]) * 65536)
    blocks = -(-4 * -(-width // 4) // 8)

    def row(t, instance):
        stream = (turn << 16) + (DROPOUT + layer if layer < 2 else 1000 + layer)
        drawn = [bits(meta, stream, int(meta["steps"]), instance, t, block) for block in range(blocks)]
        at = [divmod(i, blocks) for i in range(width)]
        halves = [drawn[block][part // 2] >> 16 * (part % 2) & 0xFFFF for part, block in at]
        return [65536 / (65536 - threshold) if half >= threshold else 0.0 for half in halves]

    return torch.tensor([[row(t, i) for i in range(batch)] for t in range(steps)], dtype=torch.float64)


def cardinality(meta, batch, d, stream=CARDINALITY):
    """Masks of uniform cardinality: for a row's u, a feature is seen where a number of its own is above u."""

    def row(instance):
        step = int(meta["steps"])
        u = bits(meta, stream, step, instance, 1, 0)[0]
        return [bits(meta, stream, step, instance, 0, i // 4)[i % 4] > u for i in range(d)]

    return torch.tensor([row(instance) for instance in range(batch)])


def shuffled(meta, rows):
    """The order of the rows in a pass: a Feistel network of eight rounds, walked until it lands below `rows`."""

    def scramble(x):
        x = (x ^ x >> 16) * 0x85EBCA6B % 2**32
        x = (x ^ x >> 13) * 0xC2B2AE35 % 2**32
        return x ^ x >> 16

    keys = [word for i in range(2) for word in bits(meta, SHUFFLE, int(meta["epoch"]), i, 0, 0)]
    half = ((max(rows, 2) - 1).bit_length() + 1) // 2
    order = []
    for x in range(rows):
        while True:
            left, right = x >> half, x % 2**half
            for at in range(0, 8, 2):
                left ^= scramble(right ^ keys[at]) % 2**half
                right ^= scramble(left ^ keys[at + 1]) % 2**half
            x = left << half | right
            if x < rows:
                break
        order.append(x)
    return order


# The step


def step(inputs, meta, rollout=None, states=0, noises=2, groups=1):
    """Returns what the step should give, by name without `expect.`, and its margins: how near it came to a branch.

    For another method: its rollout, the states it has beyond its k choices, its noises, and its optimiser groups."""
    rollout = rollout or relaxed_rollout
    t = {name: v.double() if v.is_floating_point() else v.long() for name, v in inputs.items()}
    k, batch, turn = int(meta["k"]), int(meta["batch"]), int(meta["turn"])
    layers = sum(name.startswith("selector.") and name.endswith(".bias") for name in t)
    names = [f"{i}.{part}" for i in range(layers) for part in ("weight", "bias")]
    selector, predictor = ([t[f"{net}.{name}"].requires_grad_() for name in names] for net in NETS)
    d = len(selector[-1])
    order = torch.tensor(shuffled(meta, len(t["x"]))[turn * batch :][:batch])
    x, y = t["x"][order], t["y"][order]
    group = t.get("group_of_column", torch.arange(d))
    margins = dict.fromkeys(CLEAR, math.inf)

    def near(what, distance):
        margins[what] = min(margins[what], distance.abs().min().item())

    def mlp(params, mask, dropout=()):
        seen = F.pad(mask, (0, 1), value=1.0)  # what belongs to no feature is known from the start
        h = torch.cat([x * seen[:, group], mask], dim=1)
        for i in range(layers - 1):
            h = F.linear(h, *params[2 * i : 2 * i + 2])
            near("kink", h)
            h = F.relu(h)
            if dropout:
                h = h * dropout[i]
        return F.linear(h, *params[-2:])

    def loss(mask, at):
        logits = mlp(predictor, mask, [multiplier[at] for multiplier in dropout])
        return F.cross_entropy(logits, y, weight=t.get("class_weight"), reduction="none")  # weight[y] times −log p

    warm_up = meta["section"] == "warm_up"
    dropout = []
    if float(meta["dropout"]) > 0:
        widths = [len(t[f"predictor.{i}.bias"]) for i in range(layers - 1)]
        dropout = [multipliers(meta, i, 1 if warm_up else k + states, batch, width) for i, width in enumerate(widths)]
    expect = {"order": order} | {f"dropout.{i}": multiplier for i, multiplier in enumerate(dropout)}
    if warm_up:
        mask = cardinality(meta, batch, d)
        objective = loss(mask.double(), 0).mean()
        expect |= {"mask": mask.long()}
    else:
        noise = gumbel(meta, batch, d, noises)
        objective, path = rollout(k, meta, noise, lambda mask: mlp(selector, mask), loss, near, (batch, d))
        expect |= {"gumbel": noise, "path": path}

    # One loss; one Adam for both networks, or one each: then the pretraining has the predictor's alone.
    at = [f"{net}.{name}" for net in NETS for name in names]
    grads = torch.autograd.grad(objective, selector + predictor, materialize_grads=True, allow_unused=True)
    weights = [t[name].detach().clone() for name in at]
    rates = [float(meta["rate"] if groups == 1 else meta[f"{name.split('.')[0]}_rate"]) for name in at]
    adam = torch.optim.Adam(
        [dict(params=[weight], lr=rate) for weight, rate in zip(weights, rates)], betas=golden.BETAS, eps=golden.EPSILON
    )
    for name, weight, grad in zip(at, weights, grads):
        if warm_up and groups == 2 and name.startswith("selector."):
            continue
        weight.grad = grad
        adam.state[weight] = {
            "step": torch.tensor(float(meta["steps"])),
            "exp_avg": t[f"mean.{name}"].clone(),
            "exp_avg_sq": t[f"variance.{name}"].clone(),
        }
    adam.step()
    expect |= {"objective": objective}
    expect |= {f"grad.{name}": grad for name, grad in zip(at, grads)}
    expect |= {f"after.{name}": weight for name, weight in zip(at, weights)}
    return {name: v.detach() for name, v in expect.items()}, margins


def relaxed_rollout(k, meta, noise, selector, loss, near, shape):
    """k losses on relaxed masks along a path of hard ones, each with the gradient of its own step."""
    temperature, gamma = float(meta["temperature"]), float(meta["gamma"])
    hard = torch.zeros(*shape, dtype=torch.float64)  # m
    total, path = 0.0, []
    for at in range(k):
        z = (selector(hard) / gamma).masked_fill(hard.bool(), -math.inf)
        relaxed = hard + (1 - hard) * F.softmax((z + noise[at]) / temperature, dim=1)  # m̃
        total = total + loss(relaxed, at) / k
        noisy = (z + noise[k + at]).detach()
        best = F.pad(noisy, (0, 1), value=-math.inf).topk(2).values
        near("tie", best[:, 0] - best[:, 1])
        j = noisy.argmax(1)
        hard = hard + F.one_hot(j, shape[1])
        path.append(j)
    return total.mean(), torch.stack(path)


# check and make, for whichever method


def check(files, step):
    failed = 0
    print(f"{'case':<20} {'tensor':<28} {'largest':>10} {'error':>10}")
    for file in files:
        tensors, meta = golden.load(file)
        wanted = {n.removeprefix("expect."): v for n, v in tensors.items() if n.startswith("expect.")}
        got, _ = step({n: v for n, v in tensors.items() if not n.startswith("expect.")}, meta)
        for name in sorted(wanted.keys() | got.keys()):
            largest, error, ok = golden.compare(wanted.get(name), got.get(name), exact=name in EXACT)
            failed += not ok
            print(f"{Path(file).stem:<20} {name:<28} {largest:>10.3e} {error:>10.1e}{'' if ok else '  MISMATCH'}")
    print(f"{failed} mismatches in {len(files)} files")
    return failed == 0


def make(directory, step, draw, cases, clearance):
    for name, spec in cases.items():
        for seed in range(1000):
            inputs, meta = draw(seed, **spec)
            expect, margins = step(inputs, meta)
            if all(margins[what] > clear for what, clear in clearance.items()):
                break
        else:
            sys.exit(f"{name}: no seed keeps clear of {', '.join(clearance)}")
        expect = {
            f"expect.{n}": v.int() if n in EXACT else v.float().reshape(v.shape or (1,)) for n, v in expect.items()
        }
        file = directory / f"{name}.safetensors"
        golden.save(file, inputs | expect, meta)
        clear = ", ".join(f"{what} {margin:.1e}" for what, margin in margins.items())
        print(f"{file}  seed {meta['seed']}, {clear}, {file.stat().st_size} bytes")


def draw(
    seed, *, d, k, rows, batch, classes, hidden, steps, epoch, section="step", group_of_column=None, known=0,
    weighted=False, temperature=1.0, gamma=1.0, dropout=0.0, rate=0.02, turn=0,
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
    }
    if weighted:
        tensors["class_weight"] = 0.5 + uniform(classes)
    # Adam's moments, as a few steps with gradients of this size would have left them.
    size, rest = 0.02, [1 - beta**steps for beta in golden.BETAS]
    for net, outputs in zip(NETS, (d, classes)):
        widths = [len(group) + d, *hidden, outputs]
        for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
            # Logits that noise can overrule: small ones of the selector, for γ makes them larger.
            gain = gamma if (net, i) == ("selector", len(hidden)) else 1.0
            tensors[f"{net}.{i}.weight"] = gain * normal(fan_out, fan_in) * math.sqrt(2 / fan_in)
            tensors[f"{net}.{i}.bias"] = gain * normal(fan_out) * 0.3
            for at in (f"{net}.{i}.weight", f"{net}.{i}.bias"):
                tensors[f"mean.{at}"] = rest[0] * size * normal(*tensors[at].shape)
                tensors[f"variance.{at}"] = rest[1] * size**2 * (0.5 + uniform(*tensors[at].shape))
    meta = dict(
        method="gdfs", section=section, k=k, batch=batch, temperature=temperature, gamma=gamma, dropout=dropout,
        rate=rate, seed=(5 << 32) + 1000 + seed, steps=steps, epoch=epoch, turn=turn,
    )
    stored = {n: v.float() if v.is_floating_point() else v.int() for n, v in tensors.items()}
    return stored, {n: str(v) for n, v in meta.items()}


def main(method, step, draw, cases, clearance):
    parser = argparse.ArgumentParser(description=f"Golden {method} training steps from PyTorch autograd.")
    jobs = parser.add_subparsers(dest="job", required=True)
    jobs.add_parser("check", help="recompute cases and compare").add_argument("case", nargs="+", type=Path)
    jobs.add_parser("make", help="write the cases").add_argument("directory", type=Path)
    args = parser.parse_args()
    if args.job == "check":
        sys.exit(0 if check(args.case, step) else 1)
    make(args.directory, step, draw, cases, clearance)


if __name__ == "__main__":
    main("GDFS", step, draw, CASES, CLEAR)
