#!/usr/bin/env python3
"""Lets one process work for an hour and looks at its memory: training in a host's frames, or cases of `ask --json`.

    cargo build --release --package querent-embed --example embed
    python3 tools/long_runs.py frames [--minutes 60] [--embed PATH] [-o FILE.json]
    python3 tools/long_runs.py cases MODEL TABLE.csv [--minutes 60] [--querent PATH] [-o FILE.json]

`frames`: the host of examples/embed draws frames and trains in them, on whatever adapter there is; whenever a training has ended,
it begins another one on the same device. All that ended must have ended alike.

`cases`: one process of `querent ask MODEL --json --repeat` is asked about the table's rows, one after the other and all over again. Each
row must end in the same answer, for the same questions, as the first time.

Memory is what the system says the process has (its resident set), looked at every second. It counts as flat if the most of the last
quarter of the time is at most 2% above the most of the second quarter: the first quarter fills caches. Exit code 1 if it is not, or
if anything else is not as said.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RELEASE = ROOT / "target" / "release"
MARGIN = 1.02


class Memory(threading.Thread):
    """Looks at a process every second until it has ended; `seen` has seconds and megabytes."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.seen, self.begun = process, [], time.monotonic()
        self.start()

    def run(self):
        while self.process.poll() is None:
            try:
                status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
                resident = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
                if resident:
                    self.seen.append((time.monotonic() - self.begun, int(resident.split()[1]) / 1024))
            except OSError:
                return
            time.sleep(1)

    def quarters(self):
        """The most of each quarter of the time, in megabytes."""
        if len(self.seen) < 8:
            sys.exit("too short: nothing can be said about memory")
        step = len(self.seen) / 4
        return [max(mb for _, mb in self.seen[round(i * step):round((i + 1) * step)]) for i in range(4)]


def frames(flags):
    """What an hour of frames gave; and what was not as it should be."""
    command = [flags.embed, "--minutes", str(flags.minutes), "--budget", flags.budget]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    memory = Memory(process)
    lines = []
    for line in process.stdout:
        count, said = line.strip().split(" frames: ", 1)
        lines.append((int(count), said))
        print(f"{time.monotonic() - memory.begun:6.0f} s  {line.strip()}", flush=True)
    wrong = [] if process.wait() == 0 else [f"exit code {process.returncode}"]
    ended = [said for _, said in lines[:-1]]
    if len(set(ended)) > 1:
        wrong.append("trainings ended differently")
    if not ended:
        wrong.append("no training ended")
    return {"frames": sum(count for count, _ in lines), "trainings": len(ended)}, memory, wrong


def cases(flags):
    """What an hour of cases gave; and what was not as it should be."""
    with open(flags.table, newline="") as file:
        rows = list(csv.DictReader(file))
    process = subprocess.Popen([flags.querent, "ask", flags.model, "--json", "--repeat"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, bufsize=1)
    memory = Memory(process)
    first, done, questions, wrong = {}, 0, 0, []

    def cell(row, field):
        """A field's value in a row, as JSON has it."""
        text = row[field["name"]]
        if text == "":
            return None
        return float(text) if field["kind"] == "number" else text

    def say(message):
        process.stdin.write(json.dumps(message) + "\n")

    printed = time.monotonic()
    while time.monotonic() - memory.begun < flags.minutes * 60 and not wrong:
        row = rows[done % len(rows)]
        asked = []
        if done:
            say({"next": True})
        while True:
            line = process.stdout.readline()
            if not line:
                wrong.append(f"the process ended in case {done}")
                break
            said = json.loads(line)
            if "error" in said:
                wrong.append(f"case {done}: {said['error']}")
                break
            if "predict" in said:
                outcome = (said["predict"], tuple(said["belief"].values()), said["spent"], tuple(asked))
                if first.setdefault(done % len(rows), outcome) != outcome:
                    wrong.append(f"case {done} is not what it was the first time")
                break
            fields = said.get("given") or said.get("fields")
            if fields is None:  # a warning
                continue
            asked.append(said.get("ask"))
            values = [cell(row, field) for field in fields]
            questions += 1
            # Nothing of a question that can be had is what `null` alone says; in a list, a cell is missing.
            say({"answer": values[0] if len(values) == 1 else None if set(values) == {None} else values})
        done += 1
        if flags.pause:
            time.sleep(flags.pause)
        if time.monotonic() - printed > 60:
            printed = time.monotonic()
            print(f"{printed - memory.begun:6.0f} s  {done} cases, {memory.seen[-1][1]:.1f} MB", flush=True)
    if process.poll() is None:
        process.stdin.close()
        if process.wait() != 0:
            wrong.append(f"exit code {process.returncode}")
    return {"cases": done, "answers": questions, "rows": len(first)}, memory, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    parts = {kind: kinds.add_parser(kind) for kind in ("frames", "cases")}
    for part in parts.values():
        part.add_argument("--minutes", type=float, default=60)
        part.add_argument("-o", "--output", type=pathlib.Path)
    parts["frames"].add_argument("--embed", default=str(RELEASE / "examples" / "embed"))
    parts["frames"].add_argument("--budget", default="8ms", help="what of a frame goes to training")
    parts["cases"].add_argument("model")
    parts["cases"].add_argument("table")
    parts["cases"].add_argument("--querent", default=str(RELEASE / "querent"))
    parts["cases"].add_argument("--pause", type=float, default=0, help="seconds between two cases")
    flags = parser.parse_args()
    counts, memory, wrong = {"frames": frames, "cases": cases}[flags.kind](flags)
    quarters = memory.quarters()
    if quarters[3] > quarters[1] * MARGIN:
        wrong.append(f"memory grew from {quarters[1]:.1f} to {quarters[3]:.1f} MB")
    result = {"kind": flags.kind, "seconds": round(memory.seen[-1][0]), **counts,
              "megabytes": [round(mb, 1) for mb in quarters], "wrong": wrong}
    print(json.dumps(result))
    if flags.output:
        part = flags.output.with_suffix(".tmp")
        part.write_text(json.dumps(result, indent=1) + "\n")
        part.rename(flags.output)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
