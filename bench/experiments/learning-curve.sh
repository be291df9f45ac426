#!/usr/bin/env bash
# learning-curve.sh: error after 0 to 100 rows of each published source, beside three textbook regressions.
. "$(dirname "$0")/lib.bash"
curves=$scratch/curves.csv
"$pacer" bench accuracy --shared "$shared" --learning-curve --output csv >"$curves"
go run ./bench/curves <"$curves" >docs/benchmarks/learning-curve.svg

# table prints the lines of curves.csv for which an awk condition holds: means over draws and their standard error.
table() {
  echo '| source | revealed | model | rows | draws | mean | SE of the mean | median | SE of the median | in 90 % | half-width | regret | refused | held back |'
  echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|---|'
  awk -F, 'function share(v) { return sprintf("%.1f %%", 100 * v) }
    NR > 1 && ('"$1"') {
      covered = $13 > 0 ? share($13) : "-"; width = $13 > 0 ? sprintf("%.2f", $14) : "-"; regret = $16 > 0 ? share($15) : "-"
      print "| " $1 "/" $2 " | " $3 " | " $4 " | " $5 " | " $6 " | " share($9) " | " share($10) " | " share($11) " | " share($12) " | " covered " | " width " | " regret " | " $8 + 0 " | " $17 + 0 " |"
    }' "$curves"
}

table '$2 == "all"' | renew learning-curve
table '$2 != "all" && $4 == "hybrid"' | renew learning-curve-sources
