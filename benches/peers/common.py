"""What the Python peers share: the line protocol (benches/support/peers.rs describes it), random problems of a
given shape, and the check against golden steps."""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
from safetensors import safe_open

GOLDEN = Path(__file__).resolve().parents[2] / "assets" / "golden"
CASES = ("syn1_st", "dropout_groups_st")
TOLERANCE = 2e-4  # of a tensor's largest magnitude, in f32

# The published setting, as benches/support/shapes.rs has it.
SETTING = dict(alpha=0.02, lam=0.5, tau_hard=1.0, tau_soft=0.5)
RATES = dict(policy=1e-3, predictor=1e-4)
DROPOUT = 0.3
NAMES = [f"{layer}.{part}" for layer in range(3) for part in ("weight", "bias")]


class Problem:
    """Sizes, costs and the table's groups; `setting` is what the objective is made of."""

    def __init__(self, d, columns, k, classes, policy, predictor, group, cost, class_weight, setting):
        self.d, self.columns, self.k, self.classes = d, columns, k, classes
        self.policy, self.predictor = policy, predictor  # widths of the hidden layers
        self.group, self.cost, self.class_weight, self.setting = group, cost, class_weight, setting
        self.grouped = columns != d

    def widths(self, net):
        hidden, outputs = (self.policy, self.d + 1) if net == "policy" else (self.predictor, self.classes)
        return [self.columns + self.d, *hidden, outputs]


def problem_of(shape):
    """The problem of a request."""
    hidden = (shape["hidden"],) * 2
    return Problem(
        shape["d"], shape["columns"], shape["k"], shape["classes"], hidden, hidden,
        np.array(shape["group_of_column"]), np.ones(shape["d"], np.float32),
        np.ones(shape["classes"], np.float32), SETTING,
    )


def weights_of(problem, seed=0):
    """Random weights by net and name, in PyTorch's layout."""
    rng, nets = np.random.default_rng(seed), {}
    for net in ("policy", "predictor"):
        widths, params = problem.widths(net), []
        for fan_in, fan_out in zip(widths, widths[1:]):
            bound = 1 / math.sqrt(fan_in)
            params.append(rng.uniform(-bound, bound, (fan_out, fan_in)).astype(np.float32))
            params.append(rng.uniform(-bound, bound, fan_out).astype(np.float32))
        nets[net] = params
    return nets


def table_of(problem, rows, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, problem.columns), dtype=np.float32)
    return x, rng.integers(problem.classes, size=rows)


# Golden steps


def golden(name):
    """A problem, weights, the batch with its noise, and what the step should give."""
    with safe_open(GOLDEN / f"{name}.safetensors", "numpy") as file:
        tensors, meta = {key: file.get_tensor(key) for key in file.keys()}, file.metadata()
    nets = {net: [tensors[f"{net}.{n}"] for n in NAMES] for net in ("policy", "predictor")}
    d, columns = len(tensors["cost"]), tensors["x"].shape[1]
    classes = len(nets["predictor"][-1])
    setting = dict(alpha=float(meta["alpha"]), lam=float(meta["lambda_ent"]),
                   tau_hard=float(meta["tau_hard"]), tau_soft=float(meta["tau_soft"]))  # fmt: skip
    problem = Problem(
        d, columns, int(meta["k"]), classes,
        [len(nets["policy"][1]), len(nets["policy"][3])],
        [len(nets["predictor"][1]), len(nets["predictor"][3])],
        tensors.get("group_of_column", np.arange(d)), tensors["cost"],
        tensors.get("class_weight", np.ones(classes, np.float32)), setting,
    )
    batch = len(tensors["x"])
    ones = [np.ones((problem.k + 1, batch, width), np.float32) for width in problem.predictor]
    dropout = [tensors.get(f"dropout.{i}", ones[i]) for i in range(2)]
    given = dict(x=tensors["x"], y=tensors["y"].astype(np.int64), gumbel=tensors["gumbel"], dropout=dropout)
    wanted = {"J": tensors["expect.J_ent"], "L": tensors["expect.L_pred"]}
    for net in ("policy", "predictor"):
        wanted |= {f"{net}.{n}": tensors[f"expect.grad.{net}.{n}"] for n in NAMES}
    return problem, nets, given, wanted


def check(step):
    """`step(problem, nets, given)` returns J, L and, net by net, the gradients."""
    failed = 0
    for case in CASES:
        problem, nets, given, wanted = golden(case)
        objective, prediction, grads = step(problem, nets, given)
        got = {"J": objective, "L": prediction}
        for net in ("policy", "predictor"):
            got |= {f"{net}.{n}": g for n, g in zip(NAMES, grads[net])}
        worst = 0.0
        for name, value in wanted.items():
            error = np.abs(np.asarray(got[name]).reshape(value.shape) - value).max() / np.abs(value).max()
            worst = max(worst, float(error) if math.isfinite(error) else math.inf)
            if not error <= TOLERANCE:
                failed += 1
                print(f"{case}: {name} is off by {error:.1e} of its largest magnitude")
        print(f"{case}: J, L and {len(wanted) - 2} gradients, at most {worst:.1e} off")
    return failed == 0


# The line protocol


def timed(work, seconds):
    """Does the work for about so long, at least once; `work(n)` does it n times and waits for the end."""
    start = time.perf_counter()
    work(1)
    each = time.perf_counter() - start
    times, spent = 1, each
    while spent < 0.9 * seconds:
        more = max(1, int((seconds - spent) / each))
        work(more)
        times, spent = times + more, time.perf_counter() - start
        each = spent / times
    return {"times": times, "seconds": spent}


def serve(kinds):
    """Answers requests; `kinds[do](problem, request)` prepares some work."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with answers
    work = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request["do"] == "time":
                answer = timed(work, request["seconds"])
            elif request["do"] in kinds:
                work = None  # frees what the last one held
                work = kinds[request["do"]](problem_of(request["shape"]), request)
                for _ in range(3):
                    work(1)  # compiles, warms up
                answer = {"ready": True}
            else:
                answer = {"error": f"cannot do {request['do']}"}
        except Exception as error:  # told to whoever asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def main(description, step, kinds):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="compare with golden steps")
    parser.add_argument("--serve", action="store_true", help="answer requests, one a line")
    args = parser.parse_args()
    if args.check:
        sys.exit(0 if check(step) else 1)
    if not args.serve:
        parser.error("--check or --serve")
    serve(kinds)
