"""Golden steps: one NM-PPG training step in PyTorch, as the reference for Querent's engines.

The forward pass is written down as DESIGN.md section 2 states it and autograd does the rest, in
float64, so nothing here shares a formula with the hand-derived backward pass that it judges.

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

# A case is of use only if f32 and f64 take the same branches. Cases that come nearer than this are redrawn.
TIE = 1e-4  # between the two best features of a step, in units of z/τh + ε
KINK = 2e-6  # between a hidden unit's input and the corner of its ReLU

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
}


# The step


def step(inputs, meta, dtype=torch.float64):
    """Returns what the step should give, by name without `expect.`, and its margins: how near it came to a branch."""
    t = {name: v.to(dtype) if v.is_floating_point() else v.long() for name, v in inputs.items()}
    alpha, lam = float(meta["alpha"]), float(meta["lambda_ent"])
    tau_hard, tau_soft = float(meta["tau_hard"]), float(meta["tau_soft"])
    k, soft = int(meta["k"]), {"st": False, "soft": True}[meta["rollout"]]
    x, y, cost = t["x"], t["y"], t["cost"]
    batch, d = len(x), len(cost)
    group = t.get("group_of_column", torch.arange(d))

    names = [f"{i}.{part}" for i in range(3) for part in ("weight", "bias")]
    policy, predictor = ([t[f"{net}.{n}"].requires_grad_() for n in names] for net in ("policy", "predictor"))
    frozen = [p.detach() for p in predictor]  # what J sees: it trains the policy only
    margins = {"tie": math.inf, "kink": math.inf}

    def mlp(params, mask, dropout=()):
        h = torch.cat([x * mask[:, group], mask], dim=1)  # x(m)
        for i in range(2):
            h = F.linear(h, *params[2 * i : 2 * i + 2])
            margins["kink"] = min(margins["kink"], h.abs().min().item())
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

    hard = torch.zeros(batch, d, dtype=dtype)  # m
    relaxed = torch.zeros(batch, d, dtype=dtype)  # m̃
    survive = torch.ones(batch, dtype=dtype)  # s
    spent, entropy, prediction, path = 0.0, 0.0, 0.0, []
    for at in range(k):
        mask = forward_as(hard, relaxed)
        blocked = F.pad(hard, (0, 1)).bool()  # acquired features; never the stop action
        z = mlp(policy, mask).masked_fill(blocked, -math.inf)

        log_p = F.log_softmax(z / tau_hard, dim=1)
        h_t = -(log_p.exp() * log_p.masked_fill(blocked, 0.0)).sum(1)

        noisy = z / tau_hard + t["gumbel"][at]
        action = F.softmax(noisy / tau_soft, dim=1)  # ã
        stop, go = action[:, -1], action[:, :-1].sum(1)  # q, g
        choice = F.softmax(noisy[:, :-1] / tau_soft, dim=1)  # r̃
        j = noisy[:, :-1].argmax(1)
        best = F.pad(noisy[:, :-1].detach(), (0, 1), value=-math.inf).topk(2).values
        margins["tie"] = min(margins["tie"], (best[:, 0] - best[:, 1]).min().item())

        onehot = F.one_hot(j, d).to(dtype)
        price = forward_as(onehot, choice) @ cost
        spent = spent + survive * (alpha * go * price + stop * loss(frozen, mask, at))
        entropy = entropy + survive * h_t
        prediction = prediction + loss(predictor, mask.detach(), at)

        hard = hard + onehot
        relaxed = relaxed + (1 - relaxed) * choice
        survive = survive * go
        path.append(j)

    mask = forward_as(hard, relaxed)
    spent = (spent + survive * loss(frozen, mask, k)).mean()
    entropy = entropy.mean()
    objective = spent - lam * entropy
    prediction = ((prediction + loss(predictor, mask.detach(), k)) / (k + 1)).mean()

    expect = {"path": torch.stack(path), "G": spent, "H": entropy, "J_ent": objective, "L_pred": prediction}
    for net, target, params in ("policy", objective, policy), ("predictor", prediction, predictor):
        grads = torch.autograd.grad(target, params)
        expect |= {f"grad.{net}.{n}": g for n, g in zip(names, grads)}
    return {name: v.detach() for name, v in expect.items()}, margins


# check


def check(files):
    failed = 0
    print(f"{'case':<20} {'tensor':<28} {'largest':>10} {'error':>10}")
    for file in files:
        tensors, meta = load(file)
        wanted = {n.removeprefix("expect."): v for n, v in tensors.items() if n.startswith("expect.")}
        got, _ = step({n: v for n, v in tensors.items() if not n.startswith("expect.")}, meta)
        for name in sorted(wanted.keys() | got.keys()):
            largest, error, ok = compare(wanted.get(name), got.get(name), exact=name == "path")
            failed += not ok
            print(f"{Path(file).stem:<20} {name:<28} {largest:>10.3e} {error:>10.1e}{'' if ok else '  MISMATCH'}")
    print(f"{failed} mismatches in {len(files)} files")
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
            if margins["tie"] > TIE and margins["kink"] > KINK:
                break
        else:
            sys.exit(f"{name}: no seed keeps clear of ties and kinks")
        scalars = {f"expect.{n}": expect.pop(n).float().reshape(1) for n in SCALARS}
        path = {"expect.path": expect.pop("path").int()}
        grads = {f"expect.{n}": g.float() for n, g in expect.items()}
        file = directory / f"{name}.safetensors"
        save(file, inputs | scalars | path | grads, meta)
        print(f"{file}  seed {seed}, tie {margins['tie']:.1e}, kink {margins['kink']:.1e}, {file.stat().st_size} bytes")


def draw(
    rng, *, d, k, batch, classes=2, group_of_column=None, policy=(16, 16), predictor=(16, 16),
    weighted=False, dropout=0.0, alpha=0.1, tau_hard=1.0, tau_soft=0.5, lambda_ent=0.03, rollout="st",
):
    """Inputs as the file holds them, f32 and i32, and the metadata."""

    def uniform(*shape):
        return torch.rand(*shape, generator=rng, dtype=torch.float64)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    columns = len(group_of_column or range(d))
    tensors = {
        "x": normal(batch, columns),
        "y": torch.randint(classes, (batch,), generator=rng),
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
    meta = dict(alpha=alpha, k=k, tau_hard=tau_hard, tau_soft=tau_soft, lambda_ent=lambda_ent, rollout=rollout)
    stored = {n: v.float() if v.is_floating_point() else v.int() for n, v in tensors.items()}
    return stored, {n: str(v) for n, v in meta.items()}


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
