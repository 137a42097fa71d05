"""The training step in JAX with the backward pass derived by hand, everything inside one jit: the best we could
write.

It uses what our own engines use (docs/architecture.md): the first layer as a running sum, the predictor once
on all steps, one pass back through it for both gradients, and weight gradients as one product over all steps."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import common
import jax_step
from jax_step import BLOCKED

# From so many inputs on, gathering rows of the first layer is faster than a product with mostly zeros.
GATHER_FROM = 200


class Members:
    """Each feature's inputs: its columns (padded with one that is always zero), then its mask entry."""

    def __init__(self, problem):
        lists = [np.flatnonzero(problem.group == j).tolist() for j in range(problem.d)]
        most, self.inputs = max(map(len, lists)), problem.columns + problem.d
        rows = [m + [self.inputs] * (most - len(m)) + [problem.columns + j] for j, m in enumerate(lists)]
        self.index = jnp.asarray(np.array(rows))
        # The same as rows of zeros and ones.
        dense = np.zeros((problem.d, self.inputs), np.float32)
        for j, m in enumerate(lists):
            dense[j, m + [problem.columns + j]] = 1
        self.dense = jnp.asarray(dense)
        self.gather = self.inputs >= GATHER_FROM

    def added(self, weight, x1, features):
        """What the acquired features add to a first layer's sum."""
        if self.gather:
            index = self.index[features]
            rows = jnp.pad(weight.T, ((0, 1), (0, 0)))[index]
            values = jnp.take_along_axis(jnp.broadcast_to(x1, (*features.shape[:-1], *x1.shape)), index, axis=-1)
            return (values[..., None] * rows).sum(-2)
        return (self.dense[features] * x1[:, :-1]) @ weight.T

    def weight_grad(self, grads, x1, path):
        """Of the first layer's weights: `grads[t]` reaches what was acquired before t."""
        later = jnp.flip(jnp.cumsum(jnp.flip(grads[1:], 0), 0), 0)
        path = path[: len(later)]
        if self.gather:
            index = self.index[path]
            values = jnp.take_along_axis(jnp.broadcast_to(x1, (*path.shape[:-1], *x1.shape)), index, axis=-1)
            total = jnp.zeros((self.inputs + 1, later.shape[-1]))
            return total.at[index].add(values[..., None] * later[..., None, :])[:-1].T
        seen = self.dense[path] * x1[:, :-1]
        return jnp.einsum("tbh,tbi->hi", later, seen)


def gradients(problem, members, policy, predictor, x, y, gumbel, dropout):
    s, k, d, columns = problem.setting, problem.k, problem.d, problem.columns
    alpha, lam, tau_hard, tau_soft = s["alpha"], s["lam"], s["tau_hard"], s["tau_soft"]
    batch, cost = len(x), jnp.asarray(problem.cost)
    x1 = jnp.concatenate([x, jnp.ones((batch, d)), jnp.zeros((batch, 1))], 1)
    to_group = jax.nn.one_hot(problem.group, d) if problem.grouped else None

    def mask_grad(din):
        through = din[..., :columns] * x
        return (through @ to_group if problem.grouped else through) + din[..., columns:]

    # Rollout
    w0, b0, w1, b1, w2, b2 = policy

    def ask(carry, noise):
        total, blocked, relaxed, survive = carry
        first = jax.nn.relu(total)
        second = jax.nn.relu(first @ w1.T + b1)
        z = jnp.where(blocked, BLOCKED, (second @ w2.T + b2) / tau_hard)
        log_p = jax.nn.log_softmax(z)
        p = jnp.exp(log_p)
        plogp = jnp.where(blocked, 0.0, p * log_p)
        entropy = -plogp.sum(1)
        u = (z + noise) / tau_soft
        action, choice = jax.nn.softmax(u), jax.nn.softmax(u[:, :-1])
        go, j = action[:, :-1].sum(1), u[:, :-1].argmax(1)
        after = (
            total + members.added(w0, x1, j),
            blocked | (jnp.arange(d + 1) == j[:, None]),
            relaxed + (1 - relaxed) * choice,
            survive * go,
        )
        bonus = plogp + p * entropy[:, None]
        return after, (first, second, bonus, entropy, action, go, choice, j, blocked, relaxed, survive)

    start = (jnp.tile(b0, (batch, 1)), jnp.zeros((batch, d + 1), bool), jnp.zeros((batch, d)), jnp.ones(batch))
    (_, _, _, last), tape = jax.lax.scan(ask, start, gumbel)
    first, second, bonus, entropy, action, go, choice, path, blocked, relaxed, survive = tape

    # The predictor, once, on all steps, and its backward pass for both gradients
    v0, c0, v1, c1, v2, c2 = predictor
    total = c0 + jnp.cumsum(members.added(v0, x1, path), 0)
    total = jnp.concatenate([jnp.broadcast_to(c0, (1, *total.shape[1:])), total])
    h1 = jax.nn.relu(total) * dropout[0]
    h2 = jax.nn.relu(h1 @ v1.T + c1) * dropout[1]
    log_p = jax.nn.log_softmax(h2 @ v2.T + c2)
    right = jax.nn.one_hot(y, problem.classes)
    weights = jnp.asarray(problem.class_weight)[y]
    losses = -(log_p * right).sum(-1) * weights
    unit = (jnp.exp(log_p) - right) * weights[:, None]
    g2 = jnp.where(h2 > 0, (unit @ v2) * dropout[1], 0.0)
    g1 = jnp.where(h1 > 0, (g2 @ v1) * dropout[0], 0.0)
    loss_grads = mask_grad(g1[1:] @ v0)
    for_predictor = [
        members.weight_grad(g1, x1, path), g1.sum((0, 1)),
        jnp.einsum("tbo,tbi->oi", g2, h1), g2.sum((0, 1)),
        jnp.einsum("tbo,tbi->oi", unit, h2), unit.sum((0, 1)),
    ]  # fmt: skip

    # J and the policy's backward pass; a step carries M and S to the one before
    price = cost[path]
    stop = action[:, :, -1]
    delta = alpha * go * price + stop * losses[:-1] - lam * entropy
    objective = (survive * delta).sum(0) + last * losses[-1]

    def back(carry, at):
        masks, later = carry
        first, second, bonus, action, go, choice, blocked, relaxed, survive, loss, price, delta, loss_grad = at
        stop = action[:, -1:]
        dq = (survive * (loss - alpha * price - later))[:, None]
        dr = (survive * alpha * go)[:, None] * cost + (1 - relaxed) * masks
        through = choice * (dr - (choice * dr).sum(1, keepdims=True))
        du = jnp.concatenate([-stop * action[:, :-1] * dq + through, stop * (1 - stop) * dq], 1)
        dz = du / (tau_soft * tau_hard) + (lam / tau_hard) * survive[:, None] * bonus
        dz = jnp.where(blocked, 0.0, dz)
        d2 = jnp.where(second > 0, dz @ w2, 0.0)
        d1 = jnp.where(first > 0, d2 @ w1, 0.0)
        masks = (1 - choice) * masks + survive[:, None] * stop * loss_grad + mask_grad(d1 @ w0)
        return (masks, delta + go * later), (dz, d2, d1)

    before = jnp.concatenate([jnp.zeros((1, batch, d)), loss_grads[:-1]])  # nothing was chosen before the first
    tape = (first, second, bonus, action, go, choice, blocked, relaxed, survive, losses[:-1], price, delta, before)
    _, (dz, d2, d1) = jax.lax.scan(back, (last[:, None] * loss_grads[-1], losses[-1]), tape, reverse=True)
    for_policy = [
        members.weight_grad(d1, x1, path), d1.sum((0, 1)),
        jnp.einsum("tbo,tbi->oi", d2, first), d2.sum((0, 1)),
        jnp.einsum("tbo,tbi->oi", dz, second), dz.sum((0, 1)),
    ]  # fmt: skip
    both = objective.mean(), losses.mean()
    return both, [g / batch for g in for_policy], [g / (batch * (k + 1)) for g in for_predictor]


def golden_step(problem, nets, given):
    members = Members(problem)
    step = jax.jit(functools.partial(gradients, problem, members))
    (objective, prediction), policy, predictor = step(
        nets["policy"], nets["predictor"], given["x"], given["y"], given["gumbel"], given["dropout"]
    )
    return objective, prediction, {"policy": policy, "predictor": predictor}


def prepare_step(problem, request):
    return jax_step.prepare_step(problem, request, functools.partial(gradients, problem, Members(problem)))


if __name__ == "__main__":
    common.main(__doc__, golden_step, {"step": prepare_step})
