#!/usr/bin/env bash
# The default training run with several seeds, and the table of their results.
#
#   benches/seeds.sh OUT [SEED …]        (default: seeds 0 1 2; about ten minutes each on two cores)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?where to put the runs}
shift
seeds=("$@")
[ $# -gt 0 ] || seeds=(0 1 2)
cargo build --release
for seed in "${seeds[@]}"; do
    [ -f "$out/seed-$seed/results.json" ] || ./target/release/rlef train --seed "$seed" --out "$out/seed-$seed"
done
python3 benches/table.py "$out" "${seeds[@]}"
