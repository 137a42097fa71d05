#!/usr/bin/env python3
"""Makes assets/clinic/clinic.csv: 1,600 invented visits to a clinic, for the tutorial in the README.

The diagnosis shows in different findings for different people: a strep test tells something about those
with a sore throat, an X-ray about those who cough with a fever. Run from the repository's root.
"""
import csv
import random

random.seed(20)
ROWS = 1600
TREATMENT = {"cold": "rest", "flu": "antiviral", "strep": "penicillin", "pneumonia": "amoxicillin"}


def pick(**shares):
    return random.choices(list(shares), weights=list(shares.values()))[0]


def visit(number):
    age = min(95, max(2, round(random.gauss(38, 22))))
    season = pick(spring=25, summer=18, autumn=25, winter=32)
    winter = season == "winter"
    diagnosis = pick(
        cold=40,
        flu=(34 if winter else 12),
        strep=(26 if age < 25 else 9),
        pneumonia=(22 if age > 60 else 8),
    )
    fever = {"cold": 37.1, "flu": 38.8, "strep": 38.3, "pneumonia": 38.7}[diagnosis]
    cough = {
        "cold": pick(none=25, mild=60, severe=15),
        "flu": pick(none=20, mild=50, severe=30),
        "strep": pick(none=75, mild=22, severe=3),
        "pneumonia": pick(none=5, mild=30, severe=65),
    }[diagnosis]
    throat = random.random() < {"cold": 0.45, "flu": 0.35, "strep": 0.93, "pneumonia": 0.1}[diagnosis]
    aches = random.random() < {"cold": 0.2, "flu": 0.85, "strep": 0.35, "pneumonia": 0.5}[diagnosis]
    strep = random.random() < (0.95 if diagnosis == "strep" else 0.04)
    crp = {"cold": 6, "flu": 18, "strep": 55, "pneumonia": 130}[diagnosis] * random.lognormvariate(0, 0.6)
    white = {"cold": 7.0, "flu": 5.6, "strep": 12.0, "pneumonia": 14.0}[diagnosis] + random.gauss(0, 1.9)
    shadow = random.random() < (0.92 if diagnosis == "pneumonia" else 0.03)
    # The laboratory loses some samples.
    lost = random.random() < 0.04
    return [
        f"V{number:05}",
        "north",
        age,
        season,
        f"{random.gauss(fever, 0.55):.1f}",
        cough,
        "yes" if throat else "no",
        "yes" if aches else "no",
        "positive" if strep else "negative",
        "" if lost else f"{crp:.0f}",
        "" if lost else f"{max(2.0, white):.1f}",
        "shadow" if shadow else "clear",
        TREATMENT[diagnosis],
        diagnosis,
    ]


with open("assets/clinic/clinic.csv", "w", newline="") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(
        "visit clinic age season temperature_c cough sore_throat aches strep_test crp_mg_l white_cells xray"
        " treatment diagnosis".split()
    )
    out.writerows(visit(number) for number in range(1, ROWS + 1))
