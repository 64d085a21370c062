"""Puts the results.json of several runs into one Markdown table: table.py FOLDER SEED ..."""

import json
import sys

folder, seeds = sys.argv[1], sys.argv[2:]
print("| seed | condition | 1@1 | 1@2 | 1@3 | training |")
print("|---|---|---|---|---|---|")
for seed in seeds:
    with open(f"{folder}/seed-{seed}/results.json") as f:
        results = json.load(f)
    with open(f"{folder}/seed-{seed}/timing.jsonl") as f:
        steps = [json.loads(line) for line in f]
    seconds = sum(s.get("timing_s/step", 0) for s in steps)
    for i, condition in enumerate(results["conditions"]):
        cells = []
        for score in condition["scores"]:
            cells.append(f"{score['value']:.3f} [{score['low']:.3f}, {score['high']:.3f}]")
        time = f"{seconds / 60:.1f} min" if i == 0 else ""
        print(f"| {seed} | {condition['name']} | " + " | ".join(cells) + f" | {time} |")
print()
print("| seed | difference in 1@3 | value | beyond chance |")
print("|---|---|---|---|")
for seed in seeds:
    with open(f"{folder}/seed-{seed}/results.json") as f:
        results = json.load(f)
    for d in results["differences"]:
        sure = "yes" if d["low"] > 0 or d["high"] < 0 else "no"
        print(f"| {seed} | {d['name']} | {d['value']:+.3f} [{d['low']:+.3f}, {d['high']:+.3f}] | {sure} |")
print()
print("| seed | generation | programs | reference and values | update | whole iteration |")
print("|---|---|---|---|---|---|")
for seed in seeds:
    with open(f"{folder}/seed-{seed}/timing.jsonl") as f:
        steps = [s for s in map(json.loads, f) if "timing_s/step" in s]
    names = ["gen", "execute", "reference_and_values", "update", "step"]
    means = [sum(s[f"timing_s/{n}"] for s in steps) / len(steps) for n in names]
    print(f"| {seed} | " + " | ".join(f"{m:.2f} s" for m in means) + " |")
