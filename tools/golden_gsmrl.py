"""Golden steps of GSMRL: one step of the surrogate (a conditional flow) with the predictor beside it, and one of policy and
critic, with several passes over the rollout, in PyTorch, as the reference for Querent's engines.

The forward pass is written down as src/methods/gsmrl/mod.rs states it; autograd does the rest, in float64, and
torch.nn.utils.clip_grad_norm_ and torch.optim.Adam the update. Everything random is drawn here as well, as
assets/golden/README.md says.

    pip install torch safetensors numpy
    python tools/golden_gsmrl.py check assets/golden/gsmrl_*.safetensors    recompute and compare; exit 1 on a mismatch
    python tools/golden_gsmrl.py make assets/golden                         write the cases in CASES
"""

import math

import torch
import torch.nn.functional as F

import golden
import golden_gdfs as gdfs

CARDINALITY = 64  # a stream of random bits
SCALE_BOUND, SLOPE_BOUND, LIMIT = 2.0, 1.0, 10.0

# As in golden.py: cases that come nearer to a branch are redrawn. `clip`: between a ratio and where it is clipped.
CLEAR = dict(tie=1e-4, kink=2e-6, clip=1e-4)

CASES = {
    # Unsorted groups of unequal size, two columns that are known from the start, class weights, dropout, two passes.
    "gsmrl_step": dict(
        group_of_column=[3, 0, 1, 3, 2, 4, 0], known=2, cost=[1.0, 0.5, 0.0, 1.5, 0.8],
        d=5, k=3, rows=13, batch=6, classes=3, weighted=True, hidden=(7, 6), surrogate_hidden=(6,), couplings=2,
        dropout=0.3, passes=2, steps=7, epoch=3, turn=1,
    ),
    # To the last feature, without dropout, one pass, an odd number of couplings with two hidden layers.
    "gsmrl_plain": dict(
        cost=[1.0, 0.2, 3.0], d=3, k=3, rows=8, batch=8, classes=2, hidden=(9,), surrogate_hidden=(5, 4), couplings=3,
        passes=1, steps=4, epoch=4,
    ),
    # The surrogate, and the predictor alone.
    "gsmrl_warm_up": dict(
        section="warm_up", group_of_column=[3, 0, 1, 3, 2, 4, 0], known=1, cost=[1.0] * 5,
        d=5, k=3, rows=14, batch=7, classes=3, weighted=True, hidden=(6, 5), surrogate_hidden=(7, 6), couplings=3,
        dropout=0.25, passes=1, norm=0.3, steps=2, epoch=1,
    ),
}


def moves(columns, couplings):
    """Which columns each coupling moves."""
    halves = [slice(i % 2, None, 2) for i in range(couplings if columns > 1 else 0)]
    return halves + [slice(0, None, 1)]


def bounded(v, bound):
    return v / (1 + v.abs() / bound)


class Row:
    """The table's rows, and what the networks are."""

    def __init__(self, t, meta, params, near):
        self.params, self.near = params, near
        batch, turn = int(meta["batch"]), int(meta["turn"])
        self.order = torch.tensor(gdfs.shuffled(meta, len(t["x"]))[turn * batch :][:batch])
        self.x, self.y = t["x"][self.order], t["y"][self.order]
        self.group, self.d = t["group_of_column"], len(t["cost"])
        self.classes = len(params["prior"][-1])
        self.couplings = int(meta["couplings"])

    def mlp(self, net, h, dropout=()):
        params = self.params[net]
        for i in range(len(params) // 2 - 1):
            h = F.linear(h, *params[2 * i : 2 * i + 2])
            self.near("kink", h)
            h = F.relu(h)
            if dropout:
                h = h * dropout[i]
        return F.linear(h, *params[-2:])

    def columns(self, mask, known):
        """A mask of features as one of columns; `known`: of what belongs to no feature."""
        return F.pad(mask, (0, 1), value=known)[:, self.group]

    def masked(self, mask):
        return torch.cat([self.x * self.columns(mask, 1.0), mask], dim=1)

    def read(self, z, given, asked, label, moved):
        """What a coupling's network reads."""
        stays = torch.ones_like(z)
        stays[:, moved] = 0
        onehot = F.one_hot(torch.full((len(z),), label), self.classes).double()
        parts = [z * stays * self.columns(asked, 0.0), self.x * self.columns(given, 1.0), given, asked, onehot]
        return torch.cat(parts, dim=1)

    def outputs(self, i, z, given, asked, label, moved):
        s, t, r = self.mlp(f"flow{i}", self.read(z, given, asked, label, moved)).chunk(3, dim=1)
        return bounded(s, SCALE_BOUND), t, bounded(r, SLOPE_BOUND)

    def density(self, given, asked, label):
        """ln p(what is asked for | what is given, label), by the change of variables."""
        wanted = self.columns(asked, 0.0)
        z, log = self.x * wanted, 0.0
        for i, moved in enumerate(moves(len(self.group), self.couplings)):
            s, t, r = self.outputs(i, z, given, asked, label, moved)
            here = wanted[:, moved]
            u = z[:, moved] * s.exp() + t
            self.near("kink", torch.where(here > 0, u, torch.ones_like(u)))
            log = log + (here * (s + r * (u < 0))).sum(1)
            new = torch.where(u < 0, u * r.exp(), u)
            z = z.clone()
            z[:, moved] = torch.where(here > 0, new, z[:, moved])
        normal = torch.distributions.Normal(0.0, 1.0)
        return log + (normal.log_prob(z) * wanted).sum(1)

    def sample(self, given, asked, label, point):
        """What a point of the base becomes."""
        wanted = self.columns(asked, 0.0)
        signs = [-1.0 if (j // 2 + point) % 2 else 1.0 for j in range(len(self.group))]
        z = wanted * torch.tensor(signs, dtype=torch.float64)
        steps = list(enumerate(moves(len(self.group), self.couplings)))
        for i, moved in reversed(steps):
            s, t, r = self.outputs(i, z, given, asked, label, moved)
            v = z[:, moved]
            u = torch.where(v < 0, v * (-r).exp(), v)
            z = z.clone()
            z[:, moved] = torch.where(wanted[:, moved] > 0, (u - t) * (-s).exp(), v)
        return z

    def logits(self, mask):
        """ln p(x_O | y) + ln p(y) of every class, for O what the mask has."""
        nothing = torch.zeros_like(mask)
        prior = self.mlp("prior", self.masked(nothing))
        return prior + torch.stack([self.density(nothing, mask, c) for c in range(self.classes)], dim=1)

    def state(self, mask):
        """What the policy reads, and the entropy of the belief."""
        belief = F.softmax(self.logits(mask), dim=1)
        points = [
            [self.sample(mask, 1 - mask, c, point).clamp(-LIMIT, LIMIT) for c in range(self.classes)] for point in range(2)
        ]
        points = torch.stack([torch.stack(of) for of in points])  # point, class, instance, column
        share = 0.5 * belief.T[None, :, :, None]
        mean = (share * points).sum((0, 1))
        spread = (share * (points - mean) ** 2).sum((0, 1)).sqrt()
        entropy = torch.distributions.Categorical(probs=belief).entropy()
        return torch.cat([self.masked(mask), belief, mean, spread], dim=1), entropy


def step(inputs, meta):
    """Returns what the step should give, by name without `expect.`, and its margins: how near it came to a branch."""
    t = {name: v.double() if v.is_floating_point() else v.long() for name, v in inputs.items()}
    nets = {}
    for name in t:
        parts = name.split(".")
        if len(parts) == 3 and parts[2] == "bias":
            nets[parts[0]] = max(nets.get(parts[0], 0), int(parts[1]) + 1)
    names = {net: [f"{net}.{i}.{p}" for i in range(layers) for p in ("weight", "bias")] for net, layers in nets.items()}
    flow = sorted(net for net in nets if net.startswith("flow"))
    groups = {"surrogate": flow + ["prior"], "predictor": ["predictor"], "policy": ["policy"], "critic": ["critic"]}
    margins = dict.fromkeys(CLEAR, math.inf)

    def near(what, distance):
        if distance.numel():
            margins[what] = min(margins[what], distance.abs().min().item())

    params = {net: [t[name].clone().requires_grad_() for name in names[net]] for net in nets}
    adams = {}
    for group, members in groups.items():
        adam = torch.optim.Adam([p for net in members for p in params[net]], betas=golden.BETAS, eps=golden.EPSILON)
        for net in members:
            for name, p in zip(names[net], params[net]):
                adam.state[p] = {
                    "step": torch.tensor(float(meta["steps"])),
                    "exp_avg": t[f"mean.{name}"].clone(),
                    "exp_avg_sq": t[f"variance.{name}"].clone(),
                }
        adams[group] = adam
    row = Row(t, meta, params, near)
    weight = t.get("class_weight", torch.ones(row.classes, dtype=torch.float64))
    grads = {}

    def update(group, loss, rate, clip):
        members = [p for net in groups[group] for p in params[net]]
        found = torch.autograd.grad(loss, members, materialize_grads=True, allow_unused=True)
        for p, g in zip(members, found):
            p.grad = g.clone()
        if clip:
            norm = torch.nn.utils.clip_grad_norm_(members, float(meta["norm"]))
            # PyTorch divides by the norm plus 1e-6; undone, as that is no part of the definition.
            if norm > float(meta["norm"]):
                for p in members:
                    p.grad *= (norm + 1e-6) / norm
        for name, p in zip([n for net in groups[group] for n in names[net]], members):
            grads[name] = p.grad.clone()
        for of in adams[group].param_groups:
            of["lr"] = rate
        adams[group].step()

    layers = nets["predictor"]
    warm_up = meta["section"] == "warm_up"
    k, batch = int(meta["k"]), int(meta["batch"])
    dropout = []
    if float(meta["dropout"]) > 0:
        widths = [len(t[f"predictor.{i}.bias"]) for i in range(layers - 1)]
        dropout = [gdfs.multipliers(meta, i, 1 if warm_up else k + 1, batch, width) for i, width in enumerate(widths)]
    expect = {"order": row.order} | {f"dropout.{i}": multiplier for i, multiplier in enumerate(dropout)}
    nobody = {name: torch.zeros_like(t[name]) for net in nets for name in names[net]}

    def predictor_loss(mask, at=None):
        logits = row.mlp("predictor", row.masked(mask), [m[at] for m in dropout] if at is not None else ())
        return F.cross_entropy(logits, row.y, weight=weight, reduction="none")

    if warm_up:
        mask = gdfs.cardinality(meta, batch, row.d, CARDINALITY).double()
        sub = row.logits(mask)
        full = sub + torch.stack([row.density(mask, 1 - mask, c) for c in range(row.classes)], dim=1)
        entropies = [F.cross_entropy(logits, row.y, weight=weight, reduction="none") for logits in (full, sub)]
        likelihood = (full.logsumexp(1) - sub.logsumexp(1)) / len(row.group)
        surrogate = (sum(entropies) - float(meta["likelihood"]) * likelihood).mean()
        prediction = predictor_loss(mask, 0 if dropout else None).mean()
        rate = float(meta["surrogate_rate"])
        update("surrogate", surrogate, rate, True)
        update("predictor", prediction, rate, False)
        expect |= {"mask": mask.long(), "objective": surrogate + prediction, "surrogate_loss": surrogate}
    else:
        expect |= rollout(row, t, meta, predictor_loss, update, near)
    # What a section leaves alone has no gradient.
    grads = nobody | grads
    expect |= {f"grad.{name}": grads[name] for net in nets for name in names[net]}
    expect |= {f"after.{name}": p for net in nets for name, p in zip(names[net], params[net])}
    return {name: v.detach() for name, v in expect.items()}, margins


def rollout(row, t, meta, predictor_loss, update, near):
    """A rollout, then the predictor's update, and several passes of policy and critic."""
    k, batch, d, cost = int(meta["k"]), int(meta["batch"]), row.d, t["cost"]
    number = {name: float(meta[name]) for name in ("alpha", "information", "discount", "trace", "clip", "bonus", "rate")}
    noise = gdfs.gumbel(meta, batch, d + 1, 1)
    mask = torch.zeros(batch, d, dtype=torch.float64)
    live = torch.ones(batch, dtype=torch.bool)
    states, masks, doubts, path, lives = [], [mask], [], [], [live]
    with torch.no_grad():
        for at in range(k):
            state, doubt = row.state(mask)
            states.append(state)
            doubts.append(doubt)
            logits = row.mlp("policy", state).masked_fill(F.pad(mask, (0, 1)).bool(), -math.inf)
            noisy = logits + noise[at]
            best = noisy.topk(2).values
            near("tie", (best[:, 0] - best[:, 1])[live])
            a = torch.where(live, noisy.argmax(1), torch.full_like(row.y, d))
            path.append(a)
            mask = mask + F.one_hot(a, d + 1)[:, :d]
            live = live & (a < d)
            masks.append(mask)
            lives.append(live)
        doubts.append(torch.distributions.Categorical(probs=F.softmax(row.logits(mask), dim=1)).entropy())
        losses = [predictor_loss(mask) for mask in masks]
        rewards = []
        for at, a in enumerate(path):
            price = F.pad(cost, (0, 1))[a]
            gain = -number["alpha"] * price + number["information"] * (doubts[at] - doubts[at + 1])
            if at == k - 1:
                gain = gain - number["discount"] * losses[k]
            rewards.append(torch.where(a == d, -losses[at], gain) * lives[at])
        values = [row.mlp("critic", state)[:, 0] for state in states] + [torch.zeros(batch, dtype=torch.float64)]
        advantages, advantage = [], torch.zeros(batch, dtype=torch.float64)
        for at in reversed(range(k)):
            delta = rewards[at] + number["discount"] * values[at + 1] * lives[at + 1] - values[at]
            advantage = (delta + number["discount"] * number["trace"] * advantage) * lives[at]
            advantages.insert(0, advantage)
        targets = [a + v for a, v in zip(advantages, values)]

        def chances(at, state):
            blocked = F.pad(masks[at], (0, 1)).bool()
            return F.log_softmax(row.mlp("policy", state).masked_fill(blocked, -1e30), dim=1)

        old = [chances(at, state).gather(1, path[at][:, None])[:, 0] for at, state in enumerate(states)]

    visited = [predictor_loss(mask, at if float(meta["dropout"]) > 0 else None) for at, mask in enumerate(masks)]
    prediction = sum((loss * live).mean() for loss, live in zip(visited, lives)) / (k + 1)
    update("predictor", prediction, number["rate"], False)
    for _ in range(int(meta["passes"])):
        surrogate, error, entropy = 0.0, 0.0, 0.0
        for at, state in enumerate(states):
            log_shares = chances(at, state)
            ratio = (log_shares.gather(1, path[at][:, None])[:, 0] - old[at]).exp()
            for end in (1 - number["clip"], 1 + number["clip"]):
                near("clip", (ratio - end)[lives[at]])
            clamped = ratio.clamp(1 - number["clip"], 1 + number["clip"])
            gain = torch.minimum(ratio * advantages[at], clamped * advantages[at])
            # What is blocked has a share of exactly zero.
            doubt = -(log_shares.exp() * log_shares).sum(1)
            surrogate = surrogate - ((gain + number["bonus"] * doubt) * lives[at]).mean() / k
            entropy = entropy + (doubt * lives[at]).mean() / k
            error = error + (((row.mlp("critic", state)[:, 0] - targets[at]) ** 2) * lives[at]).mean() / k
        update("policy", surrogate, number["rate"], True)
        update("critic", error, number["rate"], True)
    return {
        "path": torch.stack(path),
        "objective": -sum(reward.mean() for reward in rewards),
        "policy_entropy": entropy,
        "value_error": error,
    }


# check and make


def draw(
    seed, *, cost, d, k, rows, batch, classes, hidden, surrogate_hidden, couplings, passes, steps, epoch, section="step",
    group_of_column=None, known=0, weighted=False, dropout=0.0, turn=0, norm=1.0,
):
    """Inputs as the file holds them, f32 and i32, and the metadata."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=rng, dtype=torch.float64)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    group = (group_of_column or list(range(d))) + known * [d]
    n = len(group)
    tensors = {
        "x": normal(rows, n),
        "y": torch.randint(classes, (rows,), generator=rng),
        "group_of_column": torch.tensor(group),
        "cost": torch.tensor(cost, dtype=torch.float64),
    }
    if weighted:
        tensors["class_weight"] = 0.5 + uniform(classes)
    inputs = 2 * (n + d) + classes
    nets = {}
    for i, moved in enumerate(moves(n, couplings)):
        nets[f"flow{i}"] = [inputs, *surrogate_hidden, 3 * len(range(n)[moved])]
    nets |= {
        "prior": [n + d, *surrogate_hidden, classes],
        "predictor": [n + d, *hidden, classes],
        "policy": [3 * n + d + classes, *hidden, d + 1],
        "critic": [3 * n + d + classes, *hidden, 1],
    }
    # Adam's moments, as a few steps with gradients of this size would have left them.
    size, rest = 0.02, [1 - beta**steps for beta in golden.BETAS]
    for net, widths in nets.items():
        for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
            tensors[f"{net}.{i}.weight"] = normal(fan_out, fan_in) * math.sqrt(1 / fan_in)
            tensors[f"{net}.{i}.bias"] = normal(fan_out) * 0.3
            for at in (f"{net}.{i}.weight", f"{net}.{i}.bias"):
                tensors[f"mean.{at}"] = rest[0] * size * normal(*tensors[at].shape)
                tensors[f"variance.{at}"] = rest[1] * size**2 * (0.5 + uniform(*tensors[at].shape))
    meta = dict(
        method="gsmrl", section=section, k=k, batch=batch, couplings=couplings, passes=passes, dropout=dropout, norm=norm,
        alpha=0.1, information=0.7, discount=0.95, trace=0.9, clip=0.2, bonus=0.03, likelihood=0.4, rate=0.02,
        surrogate_rate=0.01, seed=(7 << 32) + 1000 + seed, steps=steps, epoch=epoch, turn=turn,
    )
    stored = {n: v.float() if v.is_floating_point() else v.int() for n, v in tensors.items()}
    return stored, {n: str(v) for n, v in meta.items()}


if __name__ == "__main__":
    gdfs.main("GSMRL", step, draw, CASES, CLEAR)
