#!/usr/bin/env python3
"""Trains on every data set of the catalog and prints the table of docs/results.md.

    python3 tools/results.py [--querent PATH] [--out DIR] [NAME ...]

What is finished already is not trained again: an interrupted run goes on where it was. The files are looked for where
`querent data list` says; the variable QUERENT_DATA names another folder. A data set whose files are not there is left out,
with a note.
"""
import argparse
import json
import pathlib
import subprocess
import sys

# What each row is trained with, besides --baselines.
ROWS = {
    "mortality": "--alpha 0.0005 --seeds 0,1,2",
    "diabetes": "--alpha 0.005 --seeds 0,1",
    "metabric": "--alpha 0.01",
    "splice": "--alpha 0.01 --seeds 0,1,2",
    "connect4": "--alpha 0.01",
    "mnist": "--alpha 0.01",
    "fashion_mnist": "--alpha 0.01",
    "enginefaultdb": "--alpha 0.01",
}


def score(numbers, metric):
    return numbers["accuracy" if metric == "accuracy" else "macro_f1"]


def between(point, metric):
    """What fixed sets reach at the policy's cost: between the cheaper and the dearer in proportion."""
    low, high = point["subsets"]
    share = (point["test"]["cost"] - low["cost"]) / max(high["cost"] - low["cost"], 1e-12)
    share = min(max(share, 0.0), 1.0)
    return score(low, metric) + (score(high, metric) - score(low, metric)) * share


def command(run):
    """What it was trained with, without what matters to this script alone."""
    words = run["command"].split()
    keep = [word for at, word in enumerate(words) if word not in ("--out", "--resume") and words[at - 1] != "--out"]
    return " ".join(keep)


def each(values, digits=4):
    """One number, or all of several."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def row(name, run):
    points, metric = run["points"], run["metric"]
    tests = [point["test"] for point in points]
    cells = [
        name,
        metric.replace("_", "-").replace("macro-f1", "macro-F1"),
        f"**{each(score(test, metric) for test in tests)}**",
        each(between(point, metric) for point in points),
        f"{score(run['nothing'], metric):.4f}",
        f"{score(run['everything'], metric):.4f}",
        f"{each((test['cost'] for test in tests), 2)} of {run['full_cost']:.0f}",
        each((test["acquisitions"] for test in tests), 2),
        each((point["seconds"] for point in points), 0),
        f"`querent {command(run)}`",
    ]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--querent", default="target/release/querent")
    parser.add_argument("--out", default="runs/results", type=pathlib.Path)
    parser.add_argument("--table-only", action="store_true", help="train nothing, print what is finished")
    parser.add_argument("names", nargs="*", default=list(ROWS))
    arguments = parser.parse_args()
    print("| data set | metric | policy | fixed set, same cost | nothing | everything | cost | questions | s | command |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in arguments.names:
        folder = arguments.out / name
        if not arguments.table_only:
            command = [arguments.querent, "train", name, *ROWS[name].split(), "--baselines", "--out", str(folder)]
            done = subprocess.run([*command, "--resume"], stdout=subprocess.DEVNULL)
            if done.returncode != 0:
                print(f"{name}: not trained", file=sys.stderr)
                continue
        try:
            run = json.loads((folder / "run.json").read_text())
        except FileNotFoundError:
            continue
        print(row(name, run), flush=True)


if __name__ == "__main__":
    main()
