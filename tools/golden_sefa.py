"""Golden steps of SEFA: one training step, and a greedy evaluation of the same rows before it, in PyTorch, as the
reference for Querent's engines.

Everything is written down as the publication states it (Norcliffe et al. 2025), with torch.nn.functional.batch_norm and
autograd, in float64; scores are gradients of the mean probability by the samples. Everything random is drawn here as
well, as assets/golden/README.md says.

    pip install torch safetensors numpy
    python tools/golden_sefa.py check assets/golden/sefa_*.safetensors    recompute and compare; exit 1 on a mismatch
    python tools/golden_sefa.py make assets/golden                        write the cases in CASES
"""

import math

import numpy
import torch
import torch.nn.functional as F

import golden_gdfs as gdfs

CARDINALITY, NOISE, SAMPLES = 144, 145, 146  # streams of random bits
KNOTS, REACH = 64, 11.0
CHEAPEST = 1e-3
SHARE, EPSILON = 0.1, 1e-5  # batch norm's, PyTorch's own

# As in golden.py: cases that come nearer to a branch are redrawn. `still`: samples that nothing moves have no score.
CLEAR = dict(tie=1e-4, kink=1e-5, still=1e-4)

CASES = {
    # Unsorted groups of unequal size, two columns that are known from the start, a feature that costs nothing.
    "sefa_step": dict(
        group_of_column=[3, 0, 1, 3, 2, 4, 3, 0], known=2, cost=[1.0, 0.5, 2.0, 0.0, 0.8], d=5, k=4, rows=13, classes=3,
        weighted=True, encoder=(5, 6), hidden=(7, 6), latent=3, samples=3, evaluated=4, beta=0.02, steps=7, epoch=3,
    ),
    # Without noise, two classes, one hidden layer each, to the last feature.
    "sefa_deterministic": dict(
        cost=[1.0, 0.2, 3.0, 0.5], d=4, k=4, rows=9, classes=2, encoder=(3,), hidden=(5,), latent=2, samples=1,
        evaluated=1, beta=0.02, deterministic=True, steps=0, epoch=0,
    ),
}


def normal(u):
    """The quantile of a standard normal distribution by the polynomials of Giles, which the engines have."""
    w, x = -math.log(4 * u * (1 - u)), 2 * u - 1
    if w < 5:
        at, terms = w - 2.5, [
            2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 0.00021858087, -0.00125372503, -0.00417768164,
            0.246640727, 1.50140941,
        ]
    else:
        at, terms = math.sqrt(w) - 3, [
            -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
            1.00167406, 2.83297682,
        ]
    value = math.sqrt(2) * x * numpy.polyval(terms, at)
    assert abs(value - torch.special.ndtri(torch.tensor(u, dtype=torch.float64)).item()) < 2e-6 * (1 + abs(value))
    return value


def scores(x):
    """Columns through their empirical distributions to a normal one."""
    made = torch.empty_like(x)
    for column in range(x.shape[1]):
        ranked = numpy.sort(x[:, column].numpy())
        shares = 1 / (1 + numpy.exp(-REACH * (2 * numpy.arange(KNOTS) / (KNOTS - 1) - 1)))
        knots = numpy.unique(ranked[(len(ranked) * shares).astype(int).clip(max=len(ranked) - 1)])
        below, up_to = (numpy.searchsorted(ranked, knots, side) for side in ("left", "right"))
        z = [float(numpy.float32(normal((a + b) / (2 * len(ranked))))) for a, b in zip(below, up_to)]
        made[:, column] = torch.tensor(numpy.interp(x[:, column].numpy(), knots, z))
    return made


def drawn(meta, batch, samples, width):
    """The noise of a step's samples: the first quarter of a row has the first words of all its blocks."""
    quarter = -(-width // 4)

    def row(sample, instance):
        bits = [gdfs.bits(meta, NOISE, int(meta["steps"]), instance, sample, block) for block in range(quarter)]
        return [normal(gdfs.unit(bits[at % quarter][at // quarter])) for at in range(width)]

    return torch.tensor([[row(s, i) for i in range(batch)] for s in range(samples)], dtype=torch.float64)


def fixed(meta, samples, width):
    """The noise of an evaluation's samples, the same for every row."""

    def row(sample):
        bits = [gdfs.bits(meta, SAMPLES, 0, sample, 0, block) for block in range(-(-width // 4))]
        return [float(numpy.float32(normal(gdfs.unit(bits[at // 4][at % 4])))) for at in range(width)]

    return torch.tensor([row(sample) for sample in range(samples)], dtype=torch.float64)


class Network:
    """Linear, ReLU, batch norm; of the last layer no ReLU, and a norm if it has one. Blocks side by side."""

    def __init__(self, t, name, near):
        layers = sum(at.startswith(f"{name}.") and at.endswith(".bias") for at in t)
        self.layers = [
            {part: t[f"{name}.{i}.{part}"] for part in ("weight", "bias", *NORM) if f"{name}.{i}.{part}" in t}
            for i in range(layers)
        ]
        self.near = near

    def __call__(self, x, training):
        """x is [row, block, unit]."""
        for i, layer in enumerate(self.layers):
            x = torch.einsum("boi,xbi->xbo", layer["weight"], x) + layer["bias"]
            if i + 1 < len(self.layers):
                self.near("kink", x)
                x = F.relu(x)
            if "scale" in layer:
                shape = x.shape
                flat = [layer[part].reshape(-1) for part in ("running_mean", "running_variance", "scale", "shift")]
                x = F.batch_norm(x.reshape(shape[0], -1), *flat, training=training, momentum=SHARE, eps=EPSILON)
                x = x.reshape(shape)
                if training:
                    layer["running_mean"], layer["running_variance"] = (v.reshape(shape[1:]) for v in flat[:2])
        return x


NORM = ("scale", "shift", "running_mean", "running_variance")
LEARNED = ("weight", "bias", "scale", "shift")


def inputs_of(x, mask, group, d):
    """[row, block, (mask, columns…)]: a block a feature, and one for what is known from the start."""
    known = (group == d).any()
    blocks, widest = d + int(known), max(int((group == j).sum()) for j in range(d + 1))
    seen = F.pad(mask, (0, 1), value=1.0)
    made = torch.zeros(len(x), blocks, 1 + widest, dtype=torch.float64)
    for block in range(blocks):
        columns = torch.nonzero(group == block)[:, 0]
        made[:, block, 0] = seen[:, block]
        made[:, block, 1 : 1 + len(columns)] = x[:, columns] * seen[:, block : block + 1]
    return made


def step(inputs, meta):
    """Returns what the step should give, by name without `expect.`, and its margins: how near it came to a branch."""
    t = {name: v.double() if v.is_floating_point() else v.long() for name, v in inputs.items()}
    k, latent, beta = int(meta["k"]), int(meta["latent"]), float(meta["beta"])
    samples, evaluated, noisy = int(meta["samples"]), int(meta["evaluated"]), meta["deterministic"] == "False"
    cost, group = t["cost"], t["group_of_column"]
    d, batch = len(cost), len(t["x"])
    margins = dict.fromkeys(CLEAR, math.inf)

    def near(what, distance):
        margins[what] = min(margins[what], distance.abs().min().item())

    x = scores(t["x"])
    encoder, predictor = Network(t, "encoder", near), Network(t, "predictor", near)
    classes = predictor.layers[-1]["bias"].shape[-1]
    weight = t.get("class_weight", torch.ones(classes, dtype=torch.float64))

    def heads(x, mask, training):
        out = encoder(inputs_of(x, mask, group, d), training)
        sigma = F.softplus(out[..., latent:]) + 1e-3
        return out[..., :latent].reshape(len(x), -1), sigma.reshape(len(x), -1)

    def believe(z, training):
        """ln of the mean of the softmaxes over samples; z is [sample, row, latents]."""
        logits = predictor(z.reshape(-1, 1, z.shape[-1]), training).reshape(*z.shape[:2], classes)
        return torch.logsumexp(F.log_softmax(logits, -1), 0) - math.log(len(z))

    # The evaluation, in the order of the table and by the running moments.
    mask = torch.zeros(batch, d, dtype=torch.float64)
    path, lost = [], []
    for at in range(k + 1):
        mu, sigma = heads(x, mask, False)
        z = mu + sigma * fixed(meta, evaluated, mu.shape[1])[:, None] if noisy else mu[None]
        z = z.detach().requires_grad_()
        log_f = believe(z, False)
        lost.append(-weight[t["y"]] * log_f.gather(1, t["y"][:, None])[:, 0])
        if at == k:
            break
        found = 0
        for c in range(classes):
            g = torch.autograd.grad(log_f[:, c].exp().sum(), z, retain_graph=True)[0]
            g = g.reshape(*g.shape[:2], -1, latent).norm(dim=-1)
            near("still", g.sum(-1))
            found = found + (g / g.sum(-1, keepdim=True)).mean(0) * log_f[:, c : c + 1].exp()
        found = found[:, :d].detach() / cost.clamp(min=CHEAPEST)
        open_ones = found.masked_fill(mask.bool(), -math.inf)
        best = F.pad(open_ones, (0, 1), value=-math.inf).topk(2).values
        near("tie", (best[:, 0] - best[:, 1]) / best[:, 0])
        path.append(open_ones.argmax(1))
        mask = mask + F.one_hot(path[-1], d)
    expect = {"path": torch.stack(path), "scores": found, "lost": lost[-1], "along": torch.stack(lost).mean()}

    # The step.
    order = torch.tensor(gdfs.shuffled(meta, batch))
    y, mask = t["y"][order], gdfs.cardinality(meta, batch, d, CARDINALITY)
    learned = {
        f"{name}.{i}.{part}": layer[part].requires_grad_()
        for name, network in (("encoder", encoder), ("predictor", predictor))
        for i, layer in enumerate(network.layers)
        for part in LEARNED
        if part in layer
    }
    mu, sigma = heads(x[order], mask.double(), True)
    noise = drawn(meta, batch, samples, mu.shape[1])
    log_f = believe(mu + sigma * noise if noisy else mu[None], True)
    loss = -weight[y] * log_f.gather(1, y[:, None])[:, 0]
    price = beta * (0.5 * (sigma**2 + mu**2 - 1) - sigma.log()).sum(1) if noisy else torch.zeros(batch)
    objective = (loss + price).mean()
    grads = torch.autograd.grad(objective, list(learned.values()))
    expect |= {"mask": mask.long(), "objective": objective, "divergence_price": price.mean()}
    if noisy:
        expect["noise"] = noise
    # A norm takes away what the layer before it adds to every row alike: those gradients are nothing but rounding.
    last = len(encoder.layers) - 1
    nothing = (f"encoder.{last}.bias", f"encoder.{last - 1}.shift")
    expect |= {f"grad.{name}": grad for name, grad in zip(learned, grads) if name not in nothing}
    for name, network in (("encoder", encoder), ("predictor", predictor)):
        for i, layer in enumerate(network.layers):
            for part in NORM[2:]:
                if part in layer:
                    expect[f"after.{name}.{i}.{part}"] = layer[part]
    return {name: v.detach() for name, v in expect.items()}, margins


# check and make


def draw(
    seed, *, cost, d, k, rows, classes, encoder, hidden, latent, samples, evaluated, beta, steps, epoch,
    group_of_column=None, known=0, weighted=False, deterministic=False,
):
    """Inputs as the file holds them, f32 and i32, and the metadata."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=rng, dtype=torch.float64)

    def normals(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    group = (group_of_column or list(range(d))) + known * [d]
    tensors = {
        "x": normals(rows, len(group)),
        "y": torch.randint(classes, (rows,), generator=rng),
        "group_of_column": torch.tensor(group),
        "cost": torch.tensor(cost, dtype=torch.float64),
    }
    if weighted:
        tensors["class_weight"] = 0.5 + uniform(classes)
    blocks, widest = d + (known > 0), max(group.count(j) for j in range(d + 1))
    for name, count, widths, last in (
        ("encoder", blocks, [1 + widest, *encoder, 2 * latent], True),
        ("predictor", 1, [blocks * latent, *hidden, classes], False),
    ):
        for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
            tensors[f"{name}.{i}.weight"] = normals(count, fan_out, fan_in) * math.sqrt(2 / fan_in)
            tensors[f"{name}.{i}.bias"] = normals(count, fan_out) * 0.3
            if last or i + 2 < len(widths):
                tensors[f"{name}.{i}.scale"] = 0.7 + 0.6 * uniform(count, fan_out)
                tensors[f"{name}.{i}.shift"] = normals(count, fan_out) * 0.2
                tensors[f"{name}.{i}.running_mean"] = normals(count, fan_out) * 0.2
                tensors[f"{name}.{i}.running_variance"] = 0.5 + uniform(count, fan_out)
    meta = dict(
        method="sefa", section="step", k=k, latent=latent, samples=samples, evaluated=evaluated, beta=beta,
        deterministic=deterministic, seed=(6 << 32) + 1000 + seed, steps=steps, epoch=epoch,
    )
    stored = {n: v.float() if v.is_floating_point() else v.int() for n, v in tensors.items()}
    return stored, {n: str(v) for n, v in meta.items()}


if __name__ == "__main__":
    gdfs.main("SEFA", step, draw, CASES, CLEAR)
