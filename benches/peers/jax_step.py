"""The training step in JAX: autodiff, noise, dropout and Adam, everything inside one jit."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import functools

import jax
import jax.numpy as jnp
import numpy as np

import common

# The generator that is cheap on CPUs: XLA's own, not the default threefry.
jax.config.update("jax_default_prng_impl", "unsafe_rbg")
BLOCKED = -1e30


def layers(params):
    return [(params[2 * i], params[2 * i + 1]) for i in range(3)]


def policy_logits(params, h):
    for i, (weight, bias) in enumerate(layers(params)):
        h = h @ weight.T + bias
        h = jax.nn.relu(h) if i < 2 else h
    return h


def predictor_logits(params, h, multipliers):
    for i, (weight, bias) in enumerate(layers(params)):
        h = h @ weight.T + bias
        h = jax.nn.relu(h) * multipliers[i] if i < 2 else h
    return h


def inputs(problem, x, mask):
    seen = mask[..., problem.group] if problem.grouped else mask
    return jnp.concatenate([x * seen, mask], axis=-1)


def objectives(problem, policy, predictor, x, y, gumbel, dropout):
    """J and L_pred. The predictor is evaluated once, on the masks of all steps."""
    s = problem.setting

    def step(carry, noise):
        hard, relaxed, survive = carry
        mask = hard + (relaxed - jax.lax.stop_gradient(relaxed))  # straight-through
        blocked = jnp.pad(hard, ((0, 0), (0, 1))) > 0
        z = jnp.where(blocked, BLOCKED, policy_logits(policy, inputs(problem, x, mask)) / s["tau_hard"])
        log_p = jax.nn.log_softmax(z)
        entropy = -jnp.where(blocked, 0.0, jnp.exp(log_p) * log_p).sum(1)
        u = (z + noise) / s["tau_soft"]
        action = jax.nn.softmax(u)
        stop, go = action[:, -1], action[:, :-1].sum(1)
        choice = jax.nn.softmax(u[:, :-1])
        onehot = jax.nn.one_hot(choice.argmax(1), problem.d)
        price = (onehot + (choice - jax.lax.stop_gradient(choice))) @ problem.cost
        after = (hard + onehot, relaxed + (1 - relaxed) * choice, survive * go)
        paid = survive * (s["alpha"] * go * price - s["lam"] * entropy)
        return after, (mask, paid, survive * stop)

    batch = x.shape[0]
    start = (jnp.zeros((batch, problem.d)), jnp.zeros((batch, problem.d)), jnp.ones(batch))
    # Unrolled it compiles for a minute and is no faster: on cube a third slower.
    (hard, relaxed, survive), (masks, paid, stops) = jax.lax.scan(step, start, gumbel)
    last = hard + (relaxed - jax.lax.stop_gradient(relaxed))
    masks = jnp.concatenate([masks, last[None]])
    stops = jnp.concatenate([stops, survive[None]])
    log_p = jax.nn.log_softmax(predictor_logits(predictor, inputs(problem, x, masks), dropout))
    picked = jnp.take_along_axis(log_p, jnp.broadcast_to(y, stops.shape)[..., None], axis=-1)[..., 0]
    loss = -jnp.asarray(problem.class_weight)[y] * picked
    return (paid.sum(0) + (stops * loss).sum(0)).mean(), loss.mean()


def gradients(problem, policy, predictor, *batch):
    """Each network descends its own objective; XLA drops what neither needs."""
    both, pull = jax.vjp(lambda a, b: objectives(problem, a, b, *batch), policy, predictor)
    one, zero = jnp.ones(()), jnp.zeros(())
    return both, pull((one, zero))[0], pull((zero, one))[1]


def adam(params, grads, moments, time, rate):
    mean = [0.9 * m + 0.1 * g for m, g in zip(moments[0], grads)]
    variance = [0.999 * v + 0.001 * g * g for v, g in zip(moments[1], grads)]
    scale = rate * jnp.sqrt(1 - 0.999**time) / (1 - 0.9**time)
    return [p - scale * m / (jnp.sqrt(v) + 1e-8) for p, m, v in zip(params, mean, variance)], (mean, variance)


def golden_step(problem, nets, given):
    step = jax.jit(functools.partial(gradients, problem))
    (objective, prediction), policy, predictor = step(
        nets["policy"], nets["predictor"], given["x"], given["y"], given["gumbel"], given["dropout"]
    )
    return objective, prediction, {"policy": policy, "predictor": predictor}


def prepare_step(problem, request, gradients_of=None):
    gradients_of = gradients_of or functools.partial(gradients, problem)
    batch = request["batch"]
    x, y = (jnp.asarray(part) for part in common.table_of(problem, request["rows"]))
    batches = len(x) // batch

    def step(state, _):
        policy, predictor, policy_moments, predictor_moments, time, order, key = state
        key, noise, drop1, drop2, shuffle = jax.random.split(key, 5)
        at = jnp.int32(time) % batches
        order = jax.lax.cond(at == 0, lambda: jax.random.permutation(shuffle, len(x)), lambda: order)
        rows = jax.lax.dynamic_slice(order, (at * batch,), (batch,))
        gumbel = jax.random.gumbel(noise, (problem.k, batch, problem.d + 1))
        keep = 1 - common.DROPOUT
        dropout = [
            jax.random.bernoulli(k, keep, (problem.k + 1, batch, width)) / keep
            for k, width in zip((drop1, drop2), problem.predictor)
        ]
        _, for_policy, for_predictor = gradients_of(policy, predictor, x[rows], y[rows], gumbel, dropout)
        time = time + 1
        policy, policy_moments = adam(policy, for_policy, policy_moments, time, common.RATES["policy"])
        predictor, predictor_moments = adam(
            predictor, for_predictor, predictor_moments, time, common.RATES["predictor"]
        )
        return (policy, predictor, policy_moments, predictor_moments, time, order, key), None

    jitted = jax.jit(lambda state: step(state, None)[0], donate_argnums=0)
    nets = {net: [jnp.asarray(v) for v in params] for net, params in common.weights_of(problem).items()}

    def zeros(net):
        return tuple([jnp.zeros_like(p) for p in nets[net]] for _ in range(2))

    state = (
        nets["policy"], nets["predictor"], zeros("policy"), zeros("predictor"),
        jnp.float32(0), jnp.arange(len(x)), jax.random.key(0),
    )  # fmt: skip

    def work(times):
        nonlocal state
        for _ in range(times):
            state = jitted(state)
        jax.block_until_ready(state)

    return work


def prepare_inference(problem, request):
    """Batch 1: a decision, the policy's and the predictor's answer for one mask. More: whole greedy runs."""
    nets = {net: [jnp.asarray(v) for v in params] for net, params in common.weights_of(problem).items()}
    batch = request["batch"]
    x = jnp.asarray(common.table_of(problem, batch)[0])
    ones = [jnp.ones(width) for width in problem.predictor]

    def blocked(logits, mask):
        return jnp.concatenate([jnp.where(mask > 0, BLOCKED, logits[:, :-1]), logits[:, -1:]], axis=1)

    @jax.jit
    def decide(nets, x, mask):
        seen = inputs(problem, x, mask)
        logits = blocked(policy_logits(nets["policy"], seen), mask)
        return logits[0, :-1].argmax(), jax.nn.softmax(predictor_logits(nets["predictor"], seen, ones))

    @jax.jit
    def run(nets, x):
        def step(_, state):
            mask, going = state
            action = blocked(policy_logits(nets["policy"], inputs(problem, x, mask)), mask).argmax(1)
            going = going & (action != problem.d)
            return mask + jax.nn.one_hot(action, problem.d) * going[:, None], going

        mask, _ = jax.lax.fori_loop(0, problem.k, step, (jnp.zeros((batch, problem.d)), jnp.ones(batch, bool)))
        return predictor_logits(nets["predictor"], inputs(problem, x, mask), ones).argmax(1)

    def work(times):
        for _ in range(times):
            if batch > 1:
                run(nets, x).block_until_ready()
                continue
            mask = np.zeros((1, problem.d), np.float32)
            for _ in range(problem.k):
                action, _ = decide(nets, x, mask)
                mask[0, int(action)] = 1.0

    return work


if __name__ == "__main__":
    common.main(__doc__, golden_step, {"step": prepare_step, "inference": prepare_inference})
