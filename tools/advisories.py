#!/usr/bin/env python3
"""Looks up every dependency in the RustSec database of advisories, without a network.

    git clone --bare https://github.com/RustSec/advisory-db DATABASE
    python3 tools/advisories.py DATABASE [Cargo.lock fuzz/Cargo.lock]

Says of which day the database is, how many packages there are, and which of them have an advisory: exit code 1 if one is about a
weakness, 0 if there are none, or only remarks (that nobody maintains a package, or that part of it is unsound).
"""
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(database, *words):
    return subprocess.run(["git", "--git-dir", database, *words], check=True, capture_output=True, text=True).stdout


def version(text):
    """What versions are ordered by: those before a release come before it."""
    core, _, before = text.split("+")[0].partition("-")
    parts = [int(part) for part in core.split(".")]
    parts += [0] * (3 - len(parts))
    words = [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in before.split(".")] if before else []
    return parts, not before, words


def fits(found, requirement):
    """Whether a version fits a requirement as Cargo has it: parts with commas between them."""
    for part in requirement.split(","):
        sign, text = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~|)\s*(\S+)\s*", part).groups()
        if text == "*":
            continue
        least = version(text)
        if sign in ("", "^", "~"):
            digits = [int(digit) for digit in re.split(r"[-+]", text)[0].split(".")]
            # What may not change: up to the first digit that is not 0, or the first two.
            fixed = next((at for at, digit in enumerate(digits) if digit), len(digits) - 1)
            if sign == "~":
                fixed = min(1, len(digits) - 1)
            if not (found >= least and found[0][:fixed + 1] == digits[:fixed + 1]):
                return False
        elif not {">=": found >= least, "<=": found <= least, ">": found > least, "<": found < least, "=": found == least}[sign]:
            return False
    return True


def self_test():
    for found, requirement, expected in [("1.2.3", ">=1.2.3", True), ("1.2.3", "<1.2.3", False), ("1.2.3-rc.1", "<1.2.3", True),
                                         ("1.9.0", "^1.2", True), ("2.0.0", "^1.2", False), ("0.3.1", "^0.2.9", False),
                                         ("0.2.11", "^0.2.9", True), ("1.2.9", "~1.2.3", True), ("1.3.0", "~1.2.3", False),
                                         ("1.5.0", ">=1.2, <2", True), ("2.0.0", ">=1.2, <2", False), ("1.0.0", "=1.0.0", True)]:
        assert fits(version(found), requirement) == expected, (found, requirement)


def advisories(database):
    """For each package its advisories. One process for all files: there are a thousand."""
    names = git(database, "ls-tree", "-r", "--name-only", "HEAD", "crates").split()
    wanted = "".join(f"HEAD:{name}\n" for name in names).encode()
    out = subprocess.run(["git", "--git-dir", database, "cat-file", "--batch"], input=wanted, check=True, capture_output=True).stdout
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        text = out[end + 1:end + 1 + size].decode()
        at = end + 2 + size
        head = re.match(r"```toml\n(.*?)\n```", text, re.S)
        if head:
            yield tomllib.loads(head.group(1)), re.search(r"^# (.*)", text, re.M).group(1)


def main():
    self_test()
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    database, *locks = sys.argv[1:]
    locks = [pathlib.Path(lock) for lock in locks] or [ROOT / "Cargo.lock", ROOT / "fuzz/Cargo.lock"]
    of = {}
    for advisory, title in advisories(database):
        of.setdefault(advisory["advisory"]["package"], []).append((advisory, title))
    print(f"the database of {git(database, 'log', '-1', '--format=%cs').strip()}: {sum(map(len, of.values()))} advisories")
    weak = 0
    for lock in locks:
        packages = [package for package in tomllib.loads(lock.read_text())["package"] if "source" in package]
        found = []
        for package in packages:
            number = version(package["version"])
            for advisory, title in of.get(package["name"], []):
                about, versions = advisory["advisory"], advisory.get("versions", {})
                spared = [*versions.get("patched", []), *versions.get("unaffected", [])]
                if "withdrawn" in about or any(fits(number, requirement) for requirement in spared):
                    continue
                kind = about.get("informational", "weakness")
                weak += kind == "weakness"
                patched = ", ".join(versions.get("patched", [])) or "nowhere"
                found.append(f"  {about['id']}: {package['name']} {package['version']}: {kind}: {title}; mended in {patched}")
        print(f"{lock}: {len(packages)} packages, {len(found)} advisories", *found, sep="\n")
    sys.exit(1 if weak else 0)


if __name__ == "__main__":
    main()
