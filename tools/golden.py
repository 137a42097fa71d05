"""Golden steps: one NM-PPG training step in PyTorch, as the reference for Querent's engines.

The forward pass is written down as DESIGN.md section 2 states it, the options as docs/training.md does, and
autograd does the rest, in float64, so nothing here shares a formula with the hand-derived backward pass that it
judges. What is not to be differentiated is detached; the score-function gradient (REINFORCE) is that of a surrogate loss;
torch.optim.Adam makes the update.

    pip install torch safetensors numpy
    python tools/golden.py check assets/golden/*.safetensors    recompute and compare; exit 1 on a mismatch
    python tools/golden.py make assets/golden                   write the cases in CASES

assets/golden/README.md describes the file format.
"""

import argparse
import json
import math
import struct
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import safe_open

TOLERANCE = 1e-6  # of a tensor's largest magnitude; what rounding the expectations to f32 leaves room for
SCALARS = ("J_ent", "L_pred", "G", "H")
EXACT = ("path", "submask")  # whole numbers
NETS = ("policy", "predictor")
NAMES = [f"{i}.{part}" for i in range(3) for part in ("weight", "bias")]

# The options' values in the published step, which has none of them.
PUBLISHED = dict(
    exact_stop=False, hazard=0.0, reinforce=0.0, rollouts=1, lure=1.0, guard=0.0, focus=0.0, submasks=0.0, seed=0,
    through_policy=True,
)
BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's
STREAM_SUBMASK = 8  # the stream of random bits that sub-masks are drawn from

# A case is of use only if f32 and f64 take the same branches. Cases that come nearer than this are redrawn.
CLEAR = dict(
    tie=1e-4,  # between the two best features of a step, in units of z/τh + ε
    kink=2e-6,  # between a hidden unit's input and the corner of its ReLU
    reach=1e-4,  # between how far a sub-mask reaches along the path and a whole number of questions
)

CASES = {
    "d1": dict(d=1, k=1, batch=5),
    "k_equals_d_cold": dict(d=7, k=7, batch=9, policy=(65, 65), predictor=(65, 65), tau_soft=0.02),
    "dropout_groups_st": dict(
        group_of_column=[3, 0, 5, 3, 1, 6, 3, 2, 0, 4, 5, 3],
        d=7, k=4, batch=11, classes=4, predictor=(12, 10), weighted=True, dropout=0.3, tau_hard=1.7,
    ),
    "dropout_soft": dict(d=6, k=4, batch=10, classes=3, weighted=True, dropout=0.3, rollout="soft"),
    "batch1": dict(d=5, k=3, batch=1, classes=3, policy=(7, 12), predictor=(9, 6)),
    "wide": dict(d=130, k=6, batch=131, classes=3, policy=(8, 8), predictor=(8, 8)),
    # The default step: once choices follow REINFORCE, and in the first fifth of a run, before they do.
    "default_reinforce": dict(
        group_of_column=[4, 0, 7, 4, 1, 8, 2, 4, 3, 0, 5, 6, 7, 2],
        d=9, k=5, batch=16, classes=3, policy=(16, 12), predictor=(12, 14), weighted=True,
        alpha=0.15, tau_hard=1.3, tau_soft=0.2, stop=2.0,
        options=dict(
            exact_stop=True, hazard=0.04, reinforce=1.0, rollouts=2, lure=0.0, guard=0.03, focus=0.4, submasks=0.6,
            seed=5,
        ),
        update=dict(policy_rate=0.05, predictor_rate=0.03, policy_steps=3, predictor_steps=5, ema=0.1),
    ),
    "default_relaxed": dict(
        group_of_column=[2, 7, 0, 1, 2, 3, 6, 4, 5, 7, 2, 6],
        d=8, k=5, batch=13, classes=3, policy=(16, 12), predictor=(12, 14), weighted=True,
        alpha=0.15, tau_hard=1.2, tau_soft=0.5, stop=2.0,
        options=dict(exact_stop=True, hazard=0.05, lure=0.0, guard=0.03, focus=0.2, submasks=0.6, seed=2**32 + 6),
        update=dict(policy_rate=0.05, predictor_rate=0.03, policy_steps=2, predictor_steps=7, ema=0.2),
    ),
    # The default step of a table of many features: what the policy reads is a constant to the gradient.
    "default_many_features": dict(
        d=90, k=6, batch=12, classes=4, policy=(20, 12), predictor=(14, 12),
        alpha=0.1, tau_hard=1.1, tau_soft=0.4, stop=3.0,
        options=dict(exact_stop=True, hazard=0.05, lure=0.0, guard=0.03, submasks=0.05, seed=9, through_policy=False),
        update=dict(policy_rate=0.05, predictor_rate=0.03, policy_steps=4, predictor_steps=6, ema=0.1),
    ),
    # What no run does: every option at a value in between.
    "options_mixed": dict(
        d=40, k=4, batch=10, policy=(12, 10), predictor=(10, 12), weighted=True, dropout=0.3,
        tau_hard=0.8, tau_soft=0.6, stop=3.0,
        options=dict(hazard=0.1, reinforce=0.4, rollouts=3, lure=0.4, guard=0.05, focus=0.3, submasks=0.5, seed=7),
        update=dict(policy_rate=0.03, predictor_rate=0.05, policy_steps=1, predictor_steps=4, ema=0.3),
    ),
}


# The step


def step(inputs, meta, dtype=torch.float64):
    """Returns what the step should give, by name without `expect.`, and its margins: how near it came to a branch."""
    t = {name: v.to(dtype) if v.is_floating_point() else v.long() for name, v in inputs.items()}
    alpha, lam = float(meta["alpha"]), float(meta["lambda_ent"])
    tau_hard, tau_soft = float(meta["tau_hard"]), float(meta["tau_soft"])
    k, soft = int(meta["k"]), {"st": False, "soft": True}[meta["rollout"]]
    option = {name: parse(meta[name], usual) if name in meta else usual for name, usual in PUBLISHED.items()}
    hazard, reinforce, lure = option["hazard"], option["reinforce"], option["lure"]
    focus, submasks = option["focus"], option["submasks"]
    x, y, cost = t["x"], t["y"], t["cost"]
    batch, d = len(x), len(cost)
    group = t.get("group_of_column", torch.arange(d))

    policy, predictor = ([t[f"{net}.{n}"].requires_grad_() for n in NAMES] for net in NETS)
    frozen = [p.detach() for p in predictor]  # what J sees: it trains the policy only
    margins = dict.fromkeys(CLEAR, math.inf)

    def near(what, distance):
        margins[what] = min(margins[what], distance.abs().min().item())

    def mlp(params, mask, dropout=()):
        h = torch.cat([x * mask[:, group], mask], dim=1)  # x(m)
        for i in range(2):
            h = F.linear(h, *params[2 * i : 2 * i + 2])
            near("kink", h)
            h = F.relu(h)
            if dropout:
                h = h * dropout[i]
        return F.linear(h, *params[4:])

    def loss(params, mask, at):
        dropout = [t[f"dropout.{i}"][at] for i in range(2)] if "dropout.0" in t else ()
        logits = mlp(params, mask, dropout)
        return F.cross_entropy(logits, y, weight=t.get("class_weight"), reduction="none")  # weight[y] times −log p

    def forward_as(hard, relaxed):
        """Straight-through: the value of `hard`, the derivative of `relaxed`."""
        return relaxed if soft else hard + (relaxed - relaxed.detach())

    def share_of_derivative(share, value):
        return value.detach() + share * (value - value.detach())

    hard = torch.zeros(batch, d, dtype=dtype)  # m
    relaxed = torch.zeros(batch, d, dtype=dtype)  # m̃
    survive = torch.ones(batch, dtype=dtype)  # s
    when = torch.full((batch, d), k)  # the step at which a feature is acquired; k: never
    asked = torch.zeros(batch, dtype=dtype)  # how many questions the policy asks before it stops, L
    spent, entropy, bonus, guard, prediction, learned = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    path, choices = [], []
    for at in range(k):
        mask = forward_as(hard, relaxed)
        blocked = F.pad(hard, (0, 1)).bool()  # acquired features; never the stop action
        read = mask if option["through_policy"] else mask.detach()
        z = mlp(policy, read).masked_fill(blocked, -math.inf)

        log_p = F.log_softmax(z / tau_hard, dim=1)
        h_t = -(log_p.exp() * log_p.masked_fill(blocked, 0.0)).sum(1)
        log_stop, log_go = log_p[:, -1], log_p[:, :-1].logsumexp(1)  # ln π, ln(1 − π)

        noisy = z / tau_hard + t["gumbel"][at]
        action = F.softmax(noisy / tau_soft, dim=1)  # ã
        stop, go = action[:, -1], action[:, :-1].sum(1)  # q, g
        if option["exact_stop"]:
            stop, go = log_stop.exp(), log_go.exp()
        stop, go = hazard + (1 - hazard) * stop, (1 - hazard) * go  # a run may be cut short at any step
        choice = F.softmax(noisy[:, :-1] / tau_soft, dim=1)  # r̃
        # The derivative that REINFORCE below does not stand for.
        choice = share_of_derivative(1 - reinforce, choice)
        j = noisy[:, :-1].argmax(1)
        best = F.pad(noisy[:, :-1].detach(), (0, 1), value=-math.inf).topk(2).values
        near("tie", best[:, 0] - best[:, 1])

        onehot = F.one_hot(j, d).to(dtype)
        price = forward_as(onehot, choice) @ cost
        l_t = loss(frozen, mask, at)
        spent = spent + survive * (alpha * go * price + stop * l_t)
        entropy = entropy + survive * h_t
        # What is in the bonus shapes the choice here; only the share `lure` of it makes surviving worth more.
        bonus = bonus + share_of_derivative(lure, survive) * h_t
        guard = guard - survive.detach() * (log_stop + log_go) / 2
        prediction_t = loss(predictor, mask.detach(), at)
        prediction = prediction + prediction_t
        learned = learned + care(focus, k, survive * stop) * prediction_t
        log_r = F.log_softmax(z[:, :-1] / tau_hard, dim=1).gather(1, j[:, None])[:, 0]  # of the feature chosen
        choices.append((log_r, survive, go, stop, price, l_t, h_t))

        hard = hard + onehot
        relaxed = relaxed + (1 - relaxed) * choice
        survive = survive * go
        when = when.scatter(1, j[:, None], at)
        asked = asked + survive.detach()
        path.append(j)

    mask = forward_as(hard, relaxed)
    l_k = loss(frozen, mask, k)
    spent = (spent + survive * l_k).mean()
    entropy = entropy.mean()
    objective = spent - lam * entropy
    prediction_k = loss(predictor, mask.detach(), k)
    learned = ((learned + care(focus, k, survive) * prediction_k) / (k + 1)).mean()
    prediction = ((prediction + prediction_k) / (k + 1)).mean()
    expect = {"path": torch.stack(path), "G": spent, "H": entropy, "J_ent": objective, "L_pred": prediction}

    # REINFORCE: of all that a rollout pays from a choice on, what differs from the instance's others.
    surrogate = torch.zeros(batch, dtype=dtype)
    value = l_k  # what surviving this far is worth
    for log_r, s_t, go, stop, price, l_t, h_t in reversed(choices):
        pays = alpha * price + value
        surrogate = surrogate + (s_t * go * advantage(pays, option["rollouts"])).detach() * log_r
        value = go * pays + stop * l_t - lure * lam * h_t
    policy_loss = spent - lam * bonus.mean() + option["guard"] * guard.mean() + reinforce * surrogate.mean()

    # The predictor's step on sub-masks of what was asked: of the first 2 L questions each with probability one half, and
    # of one row in sixteen none.
    predictor_loss = (1 - submasks) * learned
    if submasks:
        near("reach", 2 * asked - (2 * asked).round())
        submask = (when < k) & (when < 2 * asked[:, None]) & coins(batch, d, option["seed"], steps_done(meta))
        predictor_loss = predictor_loss + submasks * loss(predictor, submask.to(dtype), 0).mean()
        expect["submask"] = submask.long()

    for net, target, params in ("policy", policy_loss, policy), ("predictor", predictor_loss, predictor):
        grads = torch.autograd.grad(target, params)
        expect |= {f"grad.{net}.{n}": g for n, g in zip(NAMES, grads)}
        if "ema" in meta:
            expect |= update(net, params, grads, t, meta)
    return {name: v.detach() for name, v in expect.items()}, margins


def parse(text, usual):
    return {"true": True, "false": False}[text] if isinstance(usual, bool) else type(usual)(text)


def care(focus, k, mass):
    """How much the predictor cares for a step where so much mass stops: 1 in the mean over a rollout."""
    return 1 - focus + focus * (k + 1) * mass.detach()


def advantage(pays, rollouts):
    """What each row pays beyond the mean of the instance's other rollouts; nothing for one that has no others."""
    instance = torch.arange(len(pays)) // rollouts
    others = (instance[:, None] == instance) & ~torch.eye(len(pays), dtype=torch.bool)
    count = others.sum(1)
    mean = (others.to(pays.dtype) @ pays) / count.clamp_min(1)
    return torch.where(count > 0, pays - mean, 0.0)


def steps_done(meta):
    """Steps before this one: the predictor takes part in all of them."""
    return int(meta.get("predictor_steps", 0))


def coins(batch, d, seed, step):
    """Random bits, a pure function of seed, step, row and feature: 128 of them a draw; one row in sixteen has none set."""
    key = (seed % 2**32, seed >> 32, STREAM_SUBMASK, step)
    draws = [[threefry(key, (row, 0, block, 0)) for block in range(-(-d // 128))] for row in range(batch)]
    empty = [threefry(key, (row, 1, 0, 0))[0] < 2**28 for row in range(batch)]
    bits = [[words[i // 128][i // 32 % 4] >> i % 32 & 1 and not none for i in range(d)] for words, none in zip(draws, empty)]
    return torch.tensor(bits, dtype=torch.bool)


def threefry(key, counter):
    """Threefry-4x32 with 13 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")."""
    turns = [(10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)]
    key = [*key, 0x1BD11BDA ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(c + k) % 2**32 for c, k in zip(counter, key)]
    for round in range(13):
        for to, of, by in zip((0, 2), (1, 3) if round % 2 == 0 else (3, 1), turns[round % 8]):
            x[to] = (x[to] + x[of]) % 2**32
            x[of] = (x[of] << by | x[of] >> 32 - by) % 2**32 ^ x[to]
        if round % 4 == 3:
            at = round // 4 + 1
            x = [(word + key[(at + i) % 5] + (at if i == 3 else 0)) % 2**32 for i, word in enumerate(x)]
    return x


def update(net, params, grads, t, meta):
    """The weights after a step of Adam that goes on from given moments, and their exponential moving average."""
    expect = {}
    for name, param, grad in zip(NAMES, params, grads):
        weight = param.detach().clone()
        weight.grad = grad
        adam = torch.optim.Adam([weight], lr=float(meta[f"{net}_rate"]), betas=BETAS, eps=EPSILON)
        adam.state[weight] = {
            "step": torch.tensor(float(meta[f"{net}_steps"])),
            "exp_avg": t[f"mean.{net}.{name}"].clone(),
            "exp_avg_sq": t[f"variance.{net}.{name}"].clone(),
        }
        adam.step()
        expect[f"after.{net}.{name}"] = weight
        expect[f"average.{net}.{name}"] = t[f"average.{net}.{name}"].lerp(weight, float(meta["ema"]))
    return expect


# check


def check(files):
    failed, skipped = 0, 0
    print(f"{'case':<20} {'tensor':<28} {'largest':>10} {'error':>10}")
    for file in files:
        tensors, meta = load(file)
        if "method" in meta:
            print(f"{Path(file).stem:<20} is not a step of NM-PPG: see tools/golden_{meta['method']}.py")
            skipped += 1
            continue
        wanted = {n.removeprefix("expect."): v for n, v in tensors.items() if n.startswith("expect.")}
        got, _ = step({n: v for n, v in tensors.items() if not n.startswith("expect.")}, meta)
        for name in sorted(wanted.keys() | got.keys()):
            largest, error, ok = compare(wanted.get(name), got.get(name), exact=name in EXACT)
            failed += not ok
            print(f"{Path(file).stem:<20} {name:<28} {largest:>10.3e} {error:>10.1e}{'' if ok else '  MISMATCH'}")
    print(f"{failed} mismatches in {len(files) - skipped} files")
    return failed == 0


def compare(wanted, got, exact):
    """The largest magnitude wanted, the largest error relative to it, and whether that is good enough."""
    if wanted is None or got is None or wanted.numel() != got.numel():
        return math.nan, math.nan, False
    wanted, got = wanted.double().flatten(), got.double().flatten()
    largest, error = wanted.abs().max().item(), (wanted - got).abs().max().item()
    ok = error <= (0.0 if exact else TOLERANCE * largest)
    return largest, error / largest if largest else error, ok


# make


def make(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for name, spec in CASES.items():
        for seed in range(1000):
            inputs, meta = draw(torch.Generator().manual_seed(seed), **spec)
            expect, margins = step(inputs, meta)
            if all(margins[what] > clear for what, clear in CLEAR.items()):
                break
        else:
            sys.exit(f"{name}: no seed keeps clear of {', '.join(CLEAR)}")
        whole = {f"expect.{n}": expect.pop(n).int() for n in EXACT if n in expect}
        scalars = {f"expect.{n}": expect.pop(n).float().reshape(1) for n in SCALARS}
        others = {f"expect.{n}": v.float() for n, v in expect.items()}
        file = directory / f"{name}.safetensors"
        save(file, inputs | scalars | whole | others, meta)
        clear = ", ".join(f"{what} {margin:.1e}" for what, margin in margins.items())
        print(f"{file}  seed {seed}, {clear}, {file.stat().st_size} bytes")


def draw(
    rng, *, d, k, batch, classes=2, group_of_column=None, policy=(16, 16), predictor=(16, 16),
    weighted=False, dropout=0.0, alpha=0.1, tau_hard=1.0, tau_soft=0.5, lambda_ent=0.03, rollout="st",
    stop=0.0, options={}, update={},
):
    """Inputs as the file holds them, f32 and i32, and the metadata."""

    def uniform(*shape):
        return torch.rand(*shape, generator=rng, dtype=torch.float64)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    columns = len(group_of_column or range(d))
    rollouts = options.get("rollouts", 1)
    instances = -(-batch // rollouts)
    tensors = {
        "x": normal(instances, columns).repeat_interleave(rollouts, 0)[:batch],
        "y": torch.randint(classes, (instances,), generator=rng).repeat_interleave(rollouts)[:batch],
        "cost": 0.5 + uniform(d),
        "gumbel": -torch.log(-torch.log(uniform(k, batch, d + 1).clamp_min(1e-300))),
    }
    if group_of_column:
        assert set(group_of_column) == set(range(d)), "every group needs a column"
        tensors["group_of_column"] = torch.tensor(group_of_column)
    if weighted:
        tensors["class_weight"] = 0.5 + uniform(classes)
    if dropout:
        for i, width in enumerate(predictor):
            tensors[f"dropout.{i}"] = (uniform(k + 1, batch, width) >= dropout).double() / (1 - dropout)
    for net, hidden, outputs in ("policy", policy, d + 1), ("predictor", predictor, classes):
        widths = [columns + d, *hidden, outputs]
        for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
            tensors[f"{net}.{i}.weight"] = normal(fan_out, fan_in) * math.sqrt(2 / fan_in)
            tensors[f"{net}.{i}.bias"] = normal(fan_out) * 0.3
    tensors["policy.2.bias"][-1] += stop  # so that some rollouts are nearly over before the horizon
    if update:
        # As a few steps with gradients of this size would have left it.
        size = 0.02
        for net in NETS:
            rest = [1 - beta ** update[f"{net}_steps"] for beta in BETAS]
            for at in (f"{net}.{name}" for name in NAMES):
                shape = tensors[at].shape
                tensors[f"mean.{at}"] = rest[0] * size * normal(*shape)
                tensors[f"variance.{at}"] = rest[1] * size**2 * (0.5 + uniform(*shape))
                tensors[f"average.{at}"] = tensors[at] + 0.2 * normal(*shape)
    meta = dict(alpha=alpha, k=k, tau_hard=tau_hard, tau_soft=tau_soft, lambda_ent=lambda_ent, rollout=rollout)
    stored = {n: v.float() if v.is_floating_point() else v.int() for n, v in tensors.items()}
    return stored, {n: str(v).lower() for n, v in (meta | options | update).items()}


# Files


def load(file):
    with safe_open(file, "pt") as f:
        return {name: f.get_tensor(name) for name in f.keys()}, f.metadata()


def save(file, tensors, meta):
    """As safetensors' own `save_file`, which puts the metadata in a random order: here equal cases are equal bytes."""
    header, data = {"__metadata__": dict(sorted(meta.items()))}, b""
    for name, v in sorted(tensors.items()):
        raw = v.contiguous().numpy().tobytes()
        kind = {torch.float32: "F32", torch.int32: "I32"}[v.dtype]
        header[name] = {"dtype": kind, "shape": list(v.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    parser = argparse.ArgumentParser(description="Golden NM-PPG training steps from PyTorch autograd.")
    jobs = parser.add_subparsers(dest="job", required=True)
    jobs.add_parser("check", help="recompute cases and compare").add_argument("case", nargs="+", type=Path)
    jobs.add_parser("make", help="write the cases").add_argument("directory", type=Path)
    args = parser.parse_args()
    if args.job == "check":
        sys.exit(0 if check(args.case) else 1)
    make(args.directory)


if __name__ == "__main__":
    main()
