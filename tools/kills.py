#!/usr/bin/env python3
"""Kills runs at random moments and goes on with them; fails every single write, sync, rename and open of a run once.

    python3 tools/kills.py [--querent PATH] [--kills 1000] [--kinds cpu,gpu,sweep,predict,compare] [--seed 0]
    python3 tools/kills.py --fail [--lasting] [--calls write,fsync,rename,openat] [--every 1]
    python3 tools/kills.py --clock

Each kind is first run undisturbed. Then it is begun in a fresh folder and killed (SIGKILL, which nothing can catch) after a
random part of the time that took, gone on with by `--resume` and killed again, until it is through; what it leaves must be
that of the undisturbed run, to the byte, but for the seconds that it took. A kill that leaves something that cannot be gone
on with, or another result, ends the tool with the folder's name.

With --fail the n-th call of a kind of each thread is made to fail by strace, for every n: with "no space left" or, for opening, "too many
open files". With --lasting the n-th call and all after it fail: the disk stays full, handles stay away, and a rename finds
the file system read-only. The run must end by itself, well or with an error (exit code 0, 1 or 2, no panic); going on
afterwards must end in the bytes of the undisturbed run.

With --clock the time of day jumps by ten years, back and forth, while a run goes on (through libfaketime): it must end in the
same bytes, and have taken as many seconds as it did.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUICK = ["--epochs", "2", "--epoch-steps", "60", "--hidden", "16"]
# What each kind runs, in a folder with the clinic's table, and the files that are its result.
KINDS = {
    "cpu": (["train", "problem.toml", "--engine", "cpu", "--alpha", "0.05", "--out", "run", *QUICK], ["run"]),
    "gpu": (["train", "problem.toml", "--engine", "gpu", "--alpha", "0.05", "--out", "run", "--epochs", "1",
             "--epoch-steps", "8", "--hidden", "8"], ["run"]),
    "sweep": (["train", "problem.toml", "--engine", "cpu", "--alphas", "0.02,0.2", "--seeds", "0,1", "--out", "run", *QUICK],
              ["run"]),
    "predict": (["predict", "model.safetensors", "many.csv", "-o", "answers.csv"], ["answers.csv"]),
    "compare": (["compare", "problem.toml", "--methods", "nmppg,gdfs,fixed,tree,nothing", "--rows", "60", "--out", "out",
                 "--epochs", "1", "--epoch-steps", "30", "--hidden", "8"],
                ["out/comparison.json", "out/results.csv", "out/areas.csv", "out/evaluation.csv.gz", "out/curves.svg"]),
}
# What no two runs share.
TIMES = re.compile(rb'\\?"seconds\\?":\s*[-+.0-9e]+')
ERRORS = {"write": "ENOSPC", "fsync": "ENOSPC", "rename": "ENOSPC", "openat": "EMFILE"}
LASTING = {**ERRORS, "rename": "EROFS"}
# Where Debian has it.
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


def content(path, folder):
    """A file's bytes without times; of a safetensors file, its header in order and its data."""
    data = path.read_bytes()
    if path.suffix == ".safetensors":
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        data = json.dumps(header, sort_keys=True).encode() + data[8 + length:]
    # The record of a run says where its problem file is.
    return TIMES.sub(b"", data).replace(str(folder).encode(), b"")


def result(folder, names):
    """What a run has left: models and results, not what it goes on from nor who holds its folder."""
    files = {}
    for name in names:
        place = folder / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and path.name not in (".lock", "checkpoint.safetensors"):
                files[str(path.relative_to(folder))] = content(path, folder)
    return files


class Bench:
    def __init__(self, args):
        self.args = args
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="querent-kills-"))
        self.template = self.place / "template"
        shutil.copytree(ROOT / "assets/clinic", self.template)
        self.check(self.template, "init", "clinic.csv", "--target", "diagnosis")
        self.check(self.template, *KINDS["cpu"][0])
        shutil.move(self.template / "run" / "model.safetensors", self.template / "model.safetensors")
        shutil.rmtree(self.template / "run")
        lines = (self.template / "clinic.csv").read_text().splitlines()
        (self.template / "many.csv").write_text("\n".join([lines[0], *lines[1:] * 20]) + "\n")

    def start(self, folder, words, before=(), variables=()):
        return subprocess.Popen([*before, self.args.querent, *words], cwd=folder, stdout=subprocess.DEVNULL,
                                stderr=open(folder / "stderr", "wb"), env={**os.environ, **dict(variables)})

    def check(self, folder, *words):
        run = self.start(folder, words)
        if run.wait():
            sys.exit(f"{folder}: querent {' '.join(words)}: {(folder / 'stderr').read_text()}")

    def fresh(self, name):
        folder = self.place / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, folder)
        return folder

    def again(self, folder, kind):
        """The words that go on with what is there."""
        words, _ = KINDS[kind]
        begun = words[0] == "train" and any((folder / "run").rglob("*.safetensors")) if (folder / "run").exists() else False
        return [*words, "--resume"] if begun or (folder / "run" / "run.json").exists() else words

    def compare(self, folder, kind, expected, what):
        found = result(folder, KINDS[kind][1])
        if found != expected:
            names = [name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name)]
            sys.exit(f"{what}: {folder} has other bytes in {', '.join(names)}")


def kills(bench, kind, count):
    words, names = KINDS[kind]
    folder = bench.fresh("undisturbed")
    begun = time.monotonic()
    bench.check(folder, *words)
    lasts = time.monotonic() - begun
    expected = result(folder, names)
    killed = whole = 0
    while killed < count:
        folder = bench.fresh("killed")
        while True:
            run = bench.start(folder, bench.again(folder, kind))
            try:
                code = run.wait(timeout=random.random() * lasts)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
                killed += 1
                continue
            if code:
                sys.exit(f"{kind}, after {killed} kills: {folder}: {(folder / 'stderr').read_text()}")
            break
        bench.compare(folder, kind, expected, f"{kind}, after {killed} kills")
        whole += 1
        print(f"\r{kind}: {killed} kills, {whole} runs went through with the same bytes", end="", flush=True)
    print()


def failures(bench, kind, calls, every, lasting):
    words, names = KINDS[kind]
    for call in calls:
        folder = bench.fresh("counted")
        counted = folder / "calls"
        run = bench.start(folder, words, ["strace", "-f", "-qq", "-o", str(counted), "-e", f"trace={call}"])
        if run.wait():
            sys.exit(f"strace: {(folder / 'stderr').read_text()}")
        # strace counts for each thread by itself, and with -o and -f every line begins with the thread's number.
        threads = collections.Counter(line.split()[0] for line in counted.read_text().splitlines() if f" {call}(" in line)
        count = max(threads.values())
        expected = result(folder, names)
        codes = collections.Counter()
        for n in range(1, count + 1, every):
            error, when = (LASTING[call], f"{n}+") if lasting else (ERRORS[call], str(n))
            folder = bench.fresh("failed")
            run = bench.start(folder, words, ["strace", "-f", "-qq", "-o", str(folder / "calls"), "-e", f"trace={call}",
                                              "-e", f"inject={call}:error={error}:when={when}"])
            code = run.wait()
            said = (folder / "stderr").read_text(errors="replace")
            codes[code] += 1
            if "(INJECTED)" not in (folder / "calls").read_text():
                sys.exit(f"{kind}, {call} {n} of {count}: strace made nothing fail")
            # Without its libraries the program has not begun.
            begun = "error while loading shared libraries" not in said
            if begun and code not in (0, 1, 2) or "panicked" in said:
                sys.exit(f"{kind}, {call} {n} of {count} failed: exit code {code}: {folder}: {said}")
            if code:
                bench.check(folder, *bench.again(folder, kind))
            bench.compare(folder, kind, expected, f"{kind}, {call} {n} of {count} failed")
            print(f"\r{kind}: {call} {n} of {count}", end="", flush=True)
        ends = ", ".join(f"{count} with exit code {code}" for code, count in sorted(codes.items()))
        how = "from then on" if lasting else "once"
        print(f"\r{kind}: {call} failed {how} at each of {sum(codes.values())} places of {count}: {ends}; all went on to the same bytes")


def clock(bench, kind):
    words, names = KINDS[kind]
    folder = bench.fresh("undisturbed")
    bench.check(folder, *words)
    expected = result(folder, names)
    folder = bench.fresh("jumped")
    now = folder / "now"
    now.write_text("+0")
    # What measures how long something takes is left alone, as on a machine whose time of day somebody sets.
    run = bench.start(folder, words, variables={
        "LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(now), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
    begun = time.monotonic()
    jumps = 0
    while run.poll() is None:
        jumps += 1
        now.write_text(["+3650d", "-3650d"][jumps % 2])
        time.sleep(0.05)
    lasted = time.monotonic() - begun
    if run.returncode:
        sys.exit(f"{kind}, after {jumps} jumps of the clock: {folder}: {(folder / 'stderr').read_text()}")
    bench.compare(folder, kind, expected, f"{kind}, after {jumps} jumps of the clock")
    seconds = json.loads((folder / "run" / "run.json").read_text())["points"][0]["seconds"]
    if not 0 < seconds < lasted:
        sys.exit(f"{kind}: {folder} says that training took {seconds} s of {lasted}")
    print(f"{kind}: the time of day jumped {jumps} times in {lasted:.1f} s: the same bytes, {seconds:.1f} s of training")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--querent", default=str(ROOT / "target/release/querent"))
    parser.add_argument("--kills", type=int, default=1000, help="kills in all, shared among the kinds")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fail", action="store_true")
    parser.add_argument("--lasting", action="store_true")
    parser.add_argument("--clock", action="store_true")
    parser.add_argument("--calls", default=",".join(ERRORS))
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    args.querent = str(pathlib.Path(args.querent).resolve())
    random.seed(args.seed)
    if args.clock and not pathlib.Path(FAKETIME).exists():
        parser.error(f"there is no {FAKETIME}: install faketime")
    kinds = ["cpu"] if args.clock else args.kinds.split(",")
    for kind in kinds:
        if kind not in KINDS:
            parser.error(f"there is no kind {kind}; there are {', '.join(KINDS)}")
    bench = Bench(args)
    for kind in kinds:
        if args.clock:
            clock(bench, kind)
        elif args.fail:
            failures(bench, kind, args.calls.split(","), args.every, args.lasting)
        else:
            kills(bench, kind, args.kills // len(kinds))
    shutil.rmtree(bench.place)


if __name__ == "__main__":
    main()
