"""The training step in PyTorch as its users write it: modules, autograd through the rollout, torch.optim.Adam."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import common


class Policy(nn.Sequential):
    def __init__(self, widths):
        super().__init__(
            nn.Linear(widths[0], widths[1]), nn.ReLU(),
            nn.Linear(widths[1], widths[2]), nn.ReLU(),
            nn.Linear(widths[2], widths[3]),
        )  # fmt: skip


class Predictor(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, h, multipliers=None):
        """Draws dropout, unless its multipliers are given."""
        for i, layer in enumerate(self.layers[:2]):
            h = F.relu(layer(h))
            h = F.dropout(h, common.DROPOUT, self.training) if multipliers is None else h * multipliers[i]
        return self.layers[2](h)


def modules(problem, nets):
    built = Policy(problem.widths("policy")), Predictor(problem.widths("predictor"))
    for module, values in zip(built, (nets["policy"], nets["predictor"])):
        with torch.no_grad():
            for param, value in zip(module.parameters(), values):
                param.copy_(torch.from_numpy(value))
    return built


class Rollout:
    """J and L_pred of a batch, as tensors that autograd can go back from."""

    def __init__(self, problem, policy, predictor):
        self.p, self.policy, self.predictor = problem, policy, predictor
        self.group = torch.from_numpy(problem.group).long() if problem.grouped else None
        self.cost = torch.from_numpy(problem.cost)
        self.class_weight = torch.from_numpy(problem.class_weight)

    def inputs(self, x, mask):
        seen = mask if self.group is None else mask[:, self.group]
        return torch.cat([x * seen, mask], dim=1)

    def loss(self, inputs, y, multipliers):
        logits = self.predictor(inputs, multipliers)
        return F.cross_entropy(logits, y, weight=self.class_weight, reduction="none")

    def __call__(self, x, y, gumbel=None, dropout=None):
        p, s = self.p, self.p.setting
        hard = torch.zeros(len(x), p.d)
        relaxed = torch.zeros(len(x), p.d)
        survive = torch.ones(len(x))
        objective, prediction = 0.0, 0.0
        for t in range(p.k + 1):
            mask = hard + (relaxed - relaxed.detach())  # straight-through
            inputs = self.inputs(x, mask)
            loss = self.loss(inputs, y, None if dropout is None else [d[t] for d in dropout])
            prediction = prediction + loss
            if t == p.k:
                objective = objective + survive * loss
                break
            blocked = F.pad(hard, (0, 1)).bool()
            z = self.policy(inputs).masked_fill(blocked, -math.inf) / s["tau_hard"]
            log_p = F.log_softmax(z, dim=1)
            entropy = -(log_p.exp() * log_p.masked_fill(blocked, 0.0)).sum(1)
            noise = -torch.empty_like(z).exponential_().log() if gumbel is None else gumbel[t]
            u = (z + noise) / s["tau_soft"]
            action = F.softmax(u, dim=1)
            stop, go = action[:, -1], action[:, :-1].sum(1)
            choice = F.softmax(u[:, :-1], dim=1)
            onehot = F.one_hot(choice.argmax(1), p.d).float()
            price = (onehot + (choice - choice.detach())) @ self.cost
            step = s["alpha"] * go * price + stop * loss - s["lam"] * entropy
            objective = objective + survive * step
            hard = hard + onehot
            relaxed = relaxed + (1 - relaxed) * choice
            survive = survive * go
        return objective.mean(), prediction.mean() / (p.k + 1)


def gradients(rollout, objective, prediction):
    """Each network descends its own objective; the predictor is evaluated once for both."""
    policy = torch.autograd.grad(objective, list(rollout.policy.parameters()), retain_graph=True)
    predictor = torch.autograd.grad(prediction, list(rollout.predictor.parameters()))
    return policy, predictor


def golden_step(problem, nets, given):
    rollout = Rollout(problem, *modules(problem, nets))
    batch = [torch.from_numpy(given[name]) for name in ("x", "y", "gumbel")]
    objective, prediction = rollout(*batch, [torch.from_numpy(d) for d in given["dropout"]])
    policy, predictor = gradients(rollout, objective, prediction)
    return objective.item(), prediction.item(), {"policy": policy, "predictor": predictor}


def prepare_step(problem, request):
    policy, predictor = modules(problem, common.weights_of(problem))
    rollout = Rollout(problem, policy, predictor)
    adams = [
        torch.optim.Adam(policy.parameters(), lr=common.RATES["policy"]),
        torch.optim.Adam(predictor.parameters(), lr=common.RATES["predictor"]),
    ]
    x, y = (torch.from_numpy(part) for part in common.table_of(problem, request["rows"]))
    batch = request["batch"]
    order, at = torch.randperm(len(x)), 0

    def work(times):
        nonlocal order, at
        for _ in range(times):
            if at + batch > len(x):
                order, at = torch.randperm(len(x)), 0
            rows = order[at : at + batch]
            at += batch
            for module, grads in zip((policy, predictor), gradients(rollout, *rollout(x[rows], y[rows]))):
                for param, grad in zip(module.parameters(), grads):
                    param.grad = grad
            for adam in adams:
                adam.step()

    return work


def prepare_inference(problem, request):
    """Batch 1: a decision, the policy's and the predictor's answer for one mask. More: whole greedy runs."""
    policy, predictor = (module.eval() for module in modules(problem, common.weights_of(problem)))
    group = torch.from_numpy(problem.group).long() if problem.grouped else None
    batch = request["batch"]
    x = torch.from_numpy(common.table_of(problem, batch)[0])

    def inputs(mask):
        return torch.cat([x * (mask if group is None else mask[:, group]), mask], dim=1)

    @torch.inference_mode()
    def decide():
        mask = torch.zeros(1, problem.d)
        for t in range(problem.k):
            seen = inputs(mask)
            logits = policy(seen)[0]
            logits[:-1].masked_fill_(mask[0].bool(), -math.inf)
            predictor(seen).softmax(1)
            action = int(logits[:-1].argmax())  # goes on whatever the stop's logit: a fixed number of decisions
            mask[0, action] = 1.0

    @torch.inference_mode()
    def run():
        mask, going = torch.zeros(batch, problem.d), torch.ones(batch, dtype=torch.bool)
        for t in range(problem.k):
            logits = policy(inputs(mask))
            logits[:, :-1].masked_fill_(mask.bool(), -math.inf)
            action = logits.argmax(1)
            going &= action != problem.d
            mask[going, action[going]] = 1.0
        predictor(inputs(mask)).argmax(1)

    def work(times):
        for _ in range(times):
            decide() if batch == 1 else run()

    return work


if __name__ == "__main__":
    common.main(__doc__, golden_step, {"step": prepare_step, "inference": prepare_inference})
