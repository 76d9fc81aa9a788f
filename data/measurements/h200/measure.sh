#!/usr/bin/env bash
# The tables of 2026-12-01, evening, as they were measured on an H200: measure.sh FOLDER [NAME…]
# Runs again what a folder does not have yet; with names, only those tables.
set -euo pipefail
out=$1
shift
gemms=$(cd "$(dirname "$0")/gemms" && pwd)
measure() {
    local name=$1
    shift
    if [ -n "${wanted:-}" ] && [[ " $wanted " != *" $name "* ]]; then return; fi
    python3 -m perfmodel measure --device h200 -o "$out/$name.csv.gz" "$@"
}
wanted=$*
measure degrees --gemms "$gemms/sixty.csv" --degree 3,6,12,24,32 --seed 1
measure cold --gemms "$gemms/sixty.csv" --cache cold --seed 1
measure more_pairs --draw 200 --seed 11 --mixed 1000
measure more_quadruples --draw 200 --seed 12 --mixed 300 --members 4
measure attention --gemms "$gemms/attention.csv" --degree 1,2,4,8 --seed 1
measure skinny --gemms "$gemms/skinny.csv" --dtype bf16 --degree 1,2,4,8 --seed 1
for dtype in bf16 fp8 tf32; do
    measure "$dtype" --gemms "$gemms/sixty.csv" --dtype "$dtype" --seed 1
done
