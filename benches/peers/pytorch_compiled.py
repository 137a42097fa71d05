"""The training step in PyTorch, as fast as we could make it: the backward pass derived by hand.

It uses what our own engines use (docs/architecture.md: the first layer as a running sum, one predictor pass for both
gradients, weight gradients as one product over all steps); the parts (a step of the rollout, the predictor
with its backward pass, a step back, the policy's weight gradients) go through torch.compile, Adam is the fused
one. Nothing is recorded by autograd. (Compiled as a whole, with the loops unrolled, it takes minutes to compile
where k is 11 and more than we waited for where k is 30.)"""

import torch
import torch.nn.functional as F

import common

BLOCKED = -1e30
# From so many inputs on, gathering rows of the first layer is faster than a product with mostly zeros.
GATHER_FROM = 200


def policy_hidden(total, weight, bias):
    """The second hidden layer from the running sum of the first."""
    first = torch.relu(total)
    return first, torch.relu(torch.addmm(bias, first, weight.t()))


def select(z, blocked, noise, tau_hard: float, tau_soft: float):
    """A step's probabilities and relaxed choice."""
    z = torch.where(blocked, BLOCKED, z / tau_hard)
    log_p = torch.log_softmax(z, 1)
    p = log_p.exp()
    plogp = torch.where(blocked, 0.0, p * log_p)
    entropy = -plogp.sum(1)
    u = (z + noise) / tau_soft
    action = torch.softmax(u, 1)
    choice = torch.softmax(u[:, :-1], 1)
    return plogp + p * entropy[:, None], entropy, action, action[:, :-1].sum(1), choice, choice.argmax(1)


def select_grad(action, go, choice, bonus, relaxed, masks, blocked, cost, price, survive, loss, later,
                alpha: float, lam: float, tau_hard: float, tau_soft: float):  # fmt: skip
    """dz of a step; `masks` is M and `later` S of the next one, `bonus` is p (log p + H)."""
    stop = action[:, -1:]
    dq = (survive * (loss - alpha * price - later))[:, None]
    dr = (survive * alpha * go)[:, None] * cost + (1 - relaxed) * masks
    through = choice * (dr - (choice * dr).sum(1, keepdim=True))
    du = torch.cat([-stop * action[:, :-1] * dq + through, stop * (1 - stop) * dq], 1)
    dz = du / (tau_soft * tau_hard) + (lam / tau_hard) * survive[:, None] * bonus
    return torch.where(blocked, 0.0, dz)


def through_relu(grad, activation):
    return torch.where(activation > 0, grad, 0.0)


class Step:
    def __init__(self, problem, nets, compiled):
        self.p = problem
        self.policy = [torch.from_numpy(v.copy()) for v in nets["policy"]]
        self.predictor = [torch.from_numpy(v.copy()) for v in nets["predictor"]]
        self.cost = torch.from_numpy(problem.cost)
        self.class_weight = torch.from_numpy(problem.class_weight)
        self.weighted = bool((self.class_weight != 1).any())
        self.group = torch.from_numpy(problem.group).long()
        self.to_group = F.one_hot(self.group, problem.d).float()
        # Each feature's inputs: its columns (padded with one that is always zero), then its mask entry.
        members = [(self.group == j).nonzero()[:, 0].tolist() for j in range(problem.d)]
        most = max(map(len, members))
        pad = problem.columns + problem.d
        rows = [m + [pad] * (most - len(m)) + [problem.columns + j] for j, m in enumerate(members)]
        self.members = torch.tensor(rows)
        self.gather = problem.columns + problem.d >= GATHER_FROM
        compile = (lambda f: torch.compile(f, dynamic=False)) if compiled else (lambda f: f)
        self.ask, self.back = compile(self.ask), compile(self.back)
        self.predict, self.weight_grads = compile(self.predict), compile(self.weight_grads)
        self.noise = compile(self.noise)

    # The first layer under hard masks

    def added(self, params, features, inputs_of, dense):
        """What the acquired features add to a first layer's sum; `inputs_of` has their values."""
        if self.gather:
            rows = F.pad(params[0].t(), (0, 0, 0, 1))  # the padding's weights
            return F.embedding_bag(self.members[features], rows, per_sample_weights=inputs_of, mode="sum")
        return dense @ params[0].t()

    def one_input(self, x1, features):
        """The acquired features' values, in the order of `members`, and the same as a dense row."""
        index = self.members[features]
        values = x1.gather(1, index)
        if self.gather:
            return values, None
        dense = torch.zeros(len(features), self.p.columns + self.p.d + 1).scatter_(1, index, values)
        return values, dense[:, :-1]

    def first_weight_grad(self, grads, features, values, dense):
        """Of the first layer's weights: `grads[t]` reaches what was acquired before t."""
        later = grads[1:].flip(0).cumsum(0).flip(0).flatten(0, 1)
        if self.gather:
            index = self.members[features.flatten()]
            total = torch.zeros(self.p.columns + self.p.d + 1, later.shape[1])
            for i in range(index.shape[1]):
                total.index_add_(0, index[:, i], values.flatten(0, 1)[:, i : i + 1] * later)
            return total[:-1].t()
        return later.t() @ dense.flatten(0, 1)

    # The step

    def gradients(self, x, y, gumbel, dropout):
        p, batch, b0 = self.p, len(x), self.policy[1]
        x1 = torch.cat([x, torch.ones(batch, p.d), torch.zeros(batch, 1)], 1)

        total = b0.expand(batch, -1).contiguous()
        blocked = torch.zeros(batch, p.d + 1, dtype=torch.bool)
        relaxed = torch.zeros(batch, p.d)
        survive = torch.ones(batch)
        tape = []
        for t in range(p.k):
            before = (blocked, relaxed, survive)
            made, (total, blocked, relaxed, survive) = self.ask(total, *before, gumbel[t], x1)
            tape.append((*made, *before))
        path, values, dense = ([made[i] for made in tape] for i in (7, 8, 9))
        path, values = torch.stack(path), torch.stack(values)
        dense = None if self.gather else torch.stack(dense)

        # The predictor, once, on all steps, and its backward pass for both gradients
        losses, loss_grads, predictor = self.predict(y, path, values, dense, dropout, x)

        # J and the policy's backward pass
        objective, later = survive * losses[-1], losses[-1]
        masks = survive[:, None] * loss_grads[-1]
        back = [None] * p.k
        for t in reversed(range(p.k)):
            # Nothing was chosen before the first step: its M is not needed, and not used.
            loss_grad = loss_grads[max(t - 1, 0)]
            back[t], (objective, later, masks) = self.back(
                tape[t], objective, later, masks, losses[t], loss_grad, x
            )
        policy = self.weight_grads(
            *zip(*back), [made[0] for made in tape], [made[1] for made in tape], path, values, dense
        )
        return objective.mean(), losses.mean(), policy, predictor

    def ask(self, total, blocked, relaxed, survive, noise, x1):
        """A step of the rollout: what the way back needs of it, and what the next one starts from."""
        s, (_, _, w1, b1, w2, b2) = self.p.setting, self.policy
        first, second = policy_hidden(total, w1, b1)
        z = torch.addmm(b2, second, w2.t())
        bonus, entropy, action, go, choice, j = select(z, blocked, noise, s["tau_hard"], s["tau_soft"])
        values, dense = self.one_input(x1, j)
        after = (
            total + self.added(self.policy, j, values, dense),
            blocked | (torch.arange(self.p.d + 1) == j[:, None]),
            relaxed + (1 - relaxed) * choice,
            survive * go,
        )
        return (first, second, bonus, entropy, action, go, choice, j, values, dense), after

    def back(self, made, objective, later, masks, loss, loss_grad, x):
        """A step back: the gradients of its layers' outputs, then J so far, S and M."""
        first, second, bonus, entropy, action, go, choice, j, _, _, blocked, relaxed, survive = made
        s, (w0, _, w1, _, w2, _) = self.p.setting, self.policy
        alpha, lam = s["alpha"], s["lam"]
        price = self.cost[j]
        dz = select_grad(
            action, go, choice, bonus, relaxed, masks, blocked, self.cost, price, survive, loss, later,
            alpha, lam, s["tau_hard"], s["tau_soft"],
        )  # fmt: skip
        d2 = through_relu(dz @ w2, second)
        d1 = through_relu(d2 @ w1, first)
        stop = action[:, -1]
        delta = alpha * go * price + stop * loss - lam * entropy
        masks = (1 - choice) * masks + (survive * stop)[:, None] * loss_grad + self.mask_grad(d1 @ w0, x)
        return (dz, d2, d1), (objective + survive * delta, delta + go * later, masks)

    def mask_grad(self, din, x):
        columns = self.p.columns
        through = din[..., :columns] * x
        return (through @ self.to_group if self.p.grouped else through) + din[..., columns:]

    def weight_grads(self, dz, d2, d1, first, second, path, values, dense):
        dz, d2, d1 = torch.stack(dz), torch.stack(d2), torch.stack(d1)
        scale = 1 / dz.shape[1]
        return [
            scale * self.first_weight_grad(d1, path[:-1], values[:-1], None if dense is None else dense[:-1]),
            scale * d1.sum((0, 1)),
            scale * (d2.flatten(0, 1).t() @ torch.cat(first)),
            scale * d2.sum((0, 1)),
            scale * (dz.flatten(0, 1).t() @ torch.cat(second)),
            scale * dz.sum((0, 1)),
        ]

    def noise(self, exponential, bits):
        """Gumbel noise and dropout's multipliers."""
        keep = 1 - common.DROPOUT
        return -exponential.log(), [(b < keep).float() / keep for b in bits]

    def predict(self, y, path, values, dense, dropout, x):
        """Losses of all steps, ∂ℓ/∂m of those after the first, and the gradient of their mean."""
        p, batch = self.p, len(y)
        w0, b0, w1, b1, w2, b2 = self.predictor
        more = self.added(
            self.predictor, path.flatten(), values.flatten(0, 1), None if dense is None else dense.flatten(0, 1)
        ).view(p.k, batch, -1)
        total = torch.cat([b0.expand(1, batch, -1), b0 + more.cumsum(0)]).flatten(0, 1)
        drop = [d.flatten(0, 1) for d in dropout]
        first = torch.relu(total) * drop[0]
        second = torch.relu(torch.addmm(b1, first, w1.t())) * drop[1]
        log_p = torch.log_softmax(torch.addmm(b2, second, w2.t()), 1)
        labels = y.repeat(p.k + 1)
        losses = -log_p.gather(1, labels[:, None])[:, 0]
        unit = log_p.exp() - F.one_hot(labels, p.classes)
        if self.weighted:
            weights = self.class_weight[labels]
            losses, unit = losses * weights, unit * weights[:, None]
        d2 = through_relu((unit @ w2) * drop[1], second)
        d1 = through_relu((d2 @ w1) * drop[0], first)
        din = (d1[batch:] @ w0).view(p.k, batch, -1)
        grads = self.mask_grad(din, x)
        scale = 1 / len(labels)
        return losses.view(p.k + 1, batch), grads, [
            scale * self.first_weight_grad(d1.view(p.k + 1, batch, -1), path, values, dense),
            scale * d1.sum(0),
            scale * (d2.t() @ first),
            scale * d2.sum(0),
            scale * (unit.t() @ second),
            scale * unit.sum(0),
        ]


def golden_step(problem, nets, given):
    step = Step(problem, nets, compiled=True)
    batch = [torch.from_numpy(given[name]) for name in ("x", "y", "gumbel")]
    with torch.inference_mode():
        objective, prediction, policy, predictor = step.gradients(
            *batch, [torch.from_numpy(d) for d in given["dropout"]]
        )
    return objective.item(), prediction.item(), {"policy": policy, "predictor": predictor}


def prepare_step(problem, request):
    torch.compiler.reset()
    step = Step(problem, common.weights_of(problem), compiled=request.get("compiled", True))
    for param in step.policy + step.predictor:
        param.requires_grad_()
    adams = [
        torch.optim.Adam(step.policy, lr=common.RATES["policy"], fused=True),
        torch.optim.Adam(step.predictor, lr=common.RATES["predictor"], fused=True),
    ]
    x, y = (torch.from_numpy(part) for part in common.table_of(problem, request["rows"]))
    batch = request["batch"]
    order, at = torch.randperm(len(x)), 0

    @torch.no_grad()
    def work(times):
        nonlocal order, at
        for _ in range(times):
            if at + batch > len(x):
                order, at = torch.randperm(len(x)), 0
            rows = order[at : at + batch]
            at += batch
            exponential = torch.empty(problem.k, batch, problem.d + 1).exponential_()
            bits = [torch.rand(problem.k + 1, batch, width) for width in problem.predictor]
            gumbel, dropout = step.noise(exponential, bits)
            _, _, policy, predictor = step.gradients(x[rows], y[rows], gumbel, dropout)
            for param, grad in zip(step.policy + step.predictor, policy + predictor):
                param.grad = grad.contiguous()
            for adam in adams:
                adam.step()

    return work


if __name__ == "__main__":
    common.main(__doc__, golden_step, {"step": prepare_step})
