#!/usr/bin/env bash
# accuracy.sh: error of every family of performance models on rows it has not seen.
. "$(dirname "$0")/lib.bash"
report=$scratch/report.md
printf '<!-- accuracy -->\n<!-- /accuracy -->\n' >"$report"
"$pacer" bench accuracy --shared "$shared" --markdown "$report"

# section TITLE prints the part of the report under a title.
section() { awk -v title="<details><summary>$1" 'index($0, title) == 1 { found = 1; next } /^<\/details>/ { found = 0 } found' "$report"; }

# remarks COLUMN turns a list of remarks into a table.
remarks() { awk -v column="$1" 'BEGIN { print "| protocol | families | " column " |" } sub(/^- /, "") { sub(/, /, " | "); sub(/: /, " | "); print "| " $0 " |" }'; }

awk '/^<details>/ { exit } /^[|]/' "$report" | sed 's/\\\*//g' | cut -d '|' -f 1-3,6- | renew accuracy-summary
section "Errors of every family" | sed -E 's/[|] regret \(choices\) [|]$/| regret | choices |/; s/ [(]([0-9]+)[)] [|]$/ | \1 |/; t; s/^([|].*) [|] - [|]$/\1 | - | - |/' | renew accuracy
section "By source" | renew accuracy-parts
section "Refused rows" | remarks rows | renew accuracy-refused
section "Notes" | remarks note | renew accuracy-notes
