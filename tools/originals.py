#!/usr/bin/env python3
"""Runs the methods of the public repository a-norcliffe/SEFA beside ours, on the same rows.

    python3 tools/originals.py --originals DIR [--tasks syn1,mnist20] [--methods gdfs,dime] [--seeds 1,2,3]
                               [--configs gdfs=1] [--querent PATH] [--out DIR] [--ours-only | --theirs-only]

DIR is a checkout of that repository; it needs PyTorch, scikit-learn and torchmetrics. Nothing of it is copied: its classes
are imported, given the rows, trained as its own scripts train them, and asked to acquire every feature of the test rows.
Ours is run as a user would: `init`, `train`, `eval --no-stop --traces`, with the settings that are given.

  syn1, syn2, syn3     60,000, 10,000 and 10,000 rows of 11 normal numbers. Judged by the acquisitions until all features
                       that matter to the row are held: x11 and those of the formula that x11 chooses.
  mnist20, fashion20   20 pixels that the repository names, 50,000, 10,000 and 10,000 rows (QUERENT_DATA has the images).
                       Judged by the mean accuracy after 1 to 20 acquisitions.

Both are given one thread; seconds are those of the processor, so that other work on the machine does not count. Every
finished part is kept in the folder of --out, so that an interrupted run goes on where it was.
"""
import argparse
import csv
import gzip
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

# Our name of a method and the repository's.
METHODS = {"gdfs": "gdfs", "dime": "dime", "ol": "opportunistic", "sefa": "sefa"}
# The features of the formulas where x11 is below zero, and where it is not.
FORMULAS = {"syn1": ([0, 1], [2, 3, 4, 5]), "syn2": ([0, 1], [6, 7, 8, 9]), "syn3": ([2, 3, 4, 5], [6, 7, 8, 9])}
DECIDES = 10
IMAGES = {"mnist20": "mnist", "fashion20": "fashion_mnist"}
PIXELS = {
    "mnist20": [153, 154, 210, 211, 243, 269, 271, 295, 327, 348, 350, 375, 405, 409, 427, 430, 461, 514, 543, 655],
    "fashion20": [10, 38, 121, 146, 202, 246, 248, 341, 343, 362, 406, 434, 454, 490, 546, 574, 580, 602, 742, 770],
}
# Which of the repository's nine configurations of a method; it takes the best by validation, and does not say which.
CONFIGS = {"gdfs": 1, "dime": 1, "ol": 1, "sefa": 1}


def syn(task):
    random = np.random.default_rng(8139)
    x = random.normal(size=(80_000, 11))
    below, above = ([
        4 * x[:, 0] * x[:, 1],
        1.2 * (x[:, 2:6] ** 2).sum(1) - 4.2,
        -10 * np.sin(0.2 * x[:, 6]) + abs(x[:, 7]) + x[:, 8] + np.exp(-x[:, 9]) - 2.4,
    ][i] for i in {"syn1": (0, 1), "syn2": (0, 2), "syn3": (1, 2)}[task])
    logit = np.where(x[:, DECIDES] < 0, below, above)
    return x.astype(np.float32), random.binomial(1, 1 / (1 + np.exp(logit))), [60_000, 10_000, 10_000]


def idx(folder, name):
    path = next(path for path in (folder / name, folder / (name + ".gz")) if path.exists())
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes)


def images(task):
    data = os.environ.get("QUERENT_DATA") or sys.exit("QUERENT_DATA must say where the images are")
    folder = pathlib.Path(data) / IMAGES[task]
    parts = [(idx(folder, f"{part}-images-idx3-ubyte"), idx(folder, f"{part}-labels-idx1-ubyte"))
             for part in ("train", "t10k")]
    order = np.random.default_rng(3295).permutation(len(parts[0][0]))
    x = np.concatenate([parts[0][0][order], parts[1][0]]).reshape(-1, 784)[:, PIXELS[task]] / np.float32(255)
    return x, np.concatenate([parts[0][1][order], parts[1][1]]).astype(int), [50_000, 10_000, 10_000]


def table(task, out):
    """The rows, and a file of them for our command."""
    x, y, sizes = syn(task) if task in FORMULAS else images(task)
    path = out / task / "table.csv"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".part"), "w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow([f"x{i + 1}" for i in range(x.shape[1])] + ["y", "split"])
            split = np.repeat(["train", "validation", "test"], sizes)
            lines.writerows([*map(repr, map(float, row)), f"c{label}", part] for row, label, part in zip(x, y, split))
        path.with_suffix(".part").rename(path)
    return x, y, sizes


def judge(task, x, sizes, order, right):
    """From the step at which each feature of a test row was acquired, and whether the guess after each step was right."""
    result = {"mean_accuracy": float(right[:, 1:].mean())}
    if task in FORMULAS:
        test = x[sizes[0] + sizes[1]:]
        held = [order[:, features + [DECIDES]].max(1) for features in FORMULAS[task]]
        result["acquisitions"] = float(np.where(test[:, DECIDES] < 0, *held).mean())
        result["first"] = {f"x{i + 1}": float(share) for i, share in enumerate((order == 1).mean(0)) if share > 0.005}
    return result


def theirs(args, task, method, seed, rows):
    """Run in a process of its own, so that its seconds can be told."""
    import torch
    sys.path.insert(0, str(args.originals))
    os.chdir(args.originals)
    load = torch.load
    torch.load = lambda *a, **k: load(*a, **{**k, "weights_only": False})
    from datasets.preprocessing_utils import preprocess_and_save_data
    from experiments.hyperparameters.utils import get_model_config
    from experiments.metrics_dict import metrics_dict
    from models.models_dict import models_dict
    from torch.utils.data import TensorDataset
    torch.set_num_threads(1)
    x, y, sizes = rows
    folder = args.out / task / "originals"
    shape = {"dataset": task, "num_con_features": x.shape[1], "num_cat_features": 0, "most_categories": 0,
             "out_dim": int(y.max()) + 1, "metric": "auroc" if task in FORMULAS else "accuracy", "max_dim": None}
    if not (folder / "X_test_cdf.pt").exists():
        folder.mkdir(parents=True, exist_ok=True)
        noise = (0.0, 0.0) if task in FORMULAS else (1e-5, 0.2)
        torch.manual_seed(0)
        preprocess_and_save_data(path=str(folder), dataset_dict=shape, train_size=sizes[0], val_size=sizes[1],
                                 X=torch.tensor(x).float(), y=torch.tensor(y).long(), M=None, shuffle=False,
                                 num_bins=200, size_normal=noise[0], ratio_uniform=noise[1])
    kind = "cdf" if method == "sefa" else "std"
    parts = [TensorDataset(*(torch.load(folder / name) for name in (f"X_{part}_{kind}.pt", f"y_{part}.pt", f"M_{part}.pt")))
             for part in ("train", "val", "test")]
    torch.manual_seed(seed)
    np.random.seed(seed)
    model = models_dict[METHODS[method]]({**get_model_config(METHODS[method], args.configs[method]), **shape})
    place = folder / f"{method}-{seed}"
    place.mkdir(exist_ok=True)
    begun = time.process_time()
    model.fit(parts[0], parts[1], str(place), metrics_dict[shape["metric"]])
    trained = time.process_time()
    model.load(str(place))
    x_test, y_test, available = parts[2].tensors
    order = np.zeros(x_test.shape, int)
    asked = torch.zeros_like(available)
    right = [(model.predict(x_test, asked).argmax(-1) == y_test).numpy()]
    for step in range(x_test.shape[1]):
        asked, chosen = model.acquire(x_test, asked, available, return_features=True)
        order[np.arange(len(order)), chosen] = step + 1
        right.append((model.predict(x_test, asked).argmax(-1) == y_test).numpy())
    seconds = {"training": trained - begun, "evaluation": time.process_time() - trained}
    return {**judge(task, x, sizes, order, np.stack(right, 1)), **seconds, "config": args.configs[method]}


def command(args, folder, *words):
    """Runs our command with one thread; the processor's seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([args.querent, *words], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "RAYON_NUM_THREADS": "1"})
    if done.returncode:
        sys.exit(f"querent {' '.join(words)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(args, task, method, seed, rows):
    x, y, sizes = rows
    folder = args.out / task
    if not (folder / "problem.toml").exists():
        command(args, folder, "init", "table.csv", "--target", "y")
    run = "-".join([method, str(seed), *args.set])
    settings = [word for given in args.set for word in ("--set", given)]
    training = command(args, folder, "--quiet", "train", "problem.toml", "--method", method, "--seeds", str(seed),
                       "--engine", "cpu", "--out", run, "--force", *settings)
    traces = folder / run / "traces.csv"
    evaluation = command(args, folder, "eval", f"{run}/model.safetensors", "--no-stop", "--horizon", str(x.shape[1]),
                         "--traces", str(traces.relative_to(folder)))
    order = np.full((sizes[2], x.shape[1]), x.shape[1] + 1)
    right = np.zeros((sizes[2], x.shape[1] + 1), bool)
    with open(traces, newline="") as file:
        for line in csv.DictReader(file):
            row, step = int(line["episode"]), int(line["step"])
            if line["action"] != "stop":
                order[row, int(line["action"][1:]) - 1] = step
                right[row, step:] = line["guess"] == line["label"]
    traces.unlink()
    seconds = {"training": training, "evaluation": evaluation}
    return {**judge(task, x, sizes, order, right), **seconds, "settings": args.set}


def spread(values):
    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return mean, error


def report(results):
    print("\n| task | method | judged by | ours | theirs | seconds of one core: ours | theirs | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for (task, method), sides in results.items():
        key = "acquisitions" if task in FORMULAS else "mean_accuracy"
        cells, seconds = [], []
        for side in ("ours", "theirs"):
            found = sides.get(side, [])
            mean, error = spread([r[key] for r in found]) if found else (float("nan"),) * 2
            cells.append("–" if not found else f"{mean:.3f}" + ("" if math.isnan(error) else f" ± {error:.3f}") + f" ({len(found)})")
            seconds.append(statistics.fmean(r["training"] for r in found) if found else float("nan"))
        print(f"| {task} | {method} | {key.replace('_', ' ')} | {cells[0]} | {cells[1]} | {seconds[0]:.0f} | {seconds[1]:.0f} "
              f"| {seconds[1] / seconds[0]:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--originals", type=pathlib.Path)
    parser.add_argument("--tasks", default="syn1")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--configs", default="")
    parser.add_argument("--set", action="append", default=[], help="a setting of our method, NAME=VALUE")
    parser.add_argument("--querent", default="target/release/querent")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("originals"))
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--theirs-only", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.out, args.querent = args.out.resolve(), str(pathlib.Path(args.querent).resolve())
    args.configs = CONFIGS | {name: int(number) for name, number in (p.split("=") for p in args.configs.split(",") if p)}
    if args.one:
        task, method, seed, file = args.one.split(",")
        result = theirs(args, task, method, int(seed), table(task, args.out))
        pathlib.Path(file).write_text(json.dumps(result))
        return
    if not args.originals and not args.ours_only:
        parser.error("--originals must say where a checkout of a-norcliffe/SEFA is, or --ours-only")
    results = {}
    for task in args.tasks.split(","):
        if task not in FORMULAS and task not in PIXELS:
            parser.error(f"there is no task {task}; there are {', '.join([*FORMULAS, *PIXELS])}")
        rows = table(task, args.out)
        for method in args.methods.split(","):
            if method not in METHODS:
                parser.error(f"there is no method {method}; there are {', '.join(METHODS)}")
            for seed in args.seeds.split(","):
                for side in ("ours", "theirs"):
                    # Other settings are other results.
                    how = "".join(f"-{given}" for given in args.set) if side == "ours" else f"-config{args.configs[method]}"
                    file = args.out / task / f"{side}-{method}-{seed}{how}.json"
                    if not file.exists() and not {"ours": args.theirs_only, "theirs": args.ours_only}[side]:
                        print(f"{task}, {method}, seed {seed}: {side}", file=sys.stderr, flush=True)
                        part = file.with_suffix(".part")
                        if side == "ours":
                            part.write_text(json.dumps(ours(args, task, method, int(seed), rows)))
                        else:
                            again = [*sys.argv, "--originals", str(args.originals.resolve()), "--out", str(args.out),
                                     "--one", f"{task},{method},{seed},{part}"]
                            log = open(file.with_suffix(".log"), "w")
                            subprocess.run([sys.executable, *again], check=True, stdout=log, stderr=log)
                        part.rename(file)
                    if file.exists():
                        results.setdefault((task, method), {}).setdefault(side, []).append(json.loads(file.read_text()))
    report(results)
    summary = {f"{task} {method}": sides for (task, method), sides in results.items()}
    part = args.out / "originals.part"
    part.write_text(json.dumps(summary, indent=1))
    part.rename(args.out / "originals.json")


if __name__ == "__main__":
    main()
