#!/usr/bin/env bash
# make bench-go: Go's benchmarks of the call path, summed up by benchstat; with BASE, a
# revision, next to those of that revision. Both are built first and take turns, so that
# what the machine does besides hits both. A benchmark that the base lacks is taken from
# here, which needs what it measures to be there.
set -euo pipefail
cd "$(dirname "$0")/../.."

GO=${GO:-go}
BASE=${BASE:-}
COUNT=${COUNT:-10}        # rounds
BENCHTIME=${BENCHTIME:-1s} # of each benchmark in a round
# which benchmarks, a regular expression
BENCH=${BENCH:-'^Benchmark(Call|CallOwners|EncodeCall|DecodeAnswer|PageCall|Result|CheckArguments)$'}
BENCHSTAT=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
packages=(bridge bridge/page bridge/agent tenant manifest)

work=$(mktemp -d)
finish() {
  if [ -d "$work/base" ]; then git worktree remove --force "$work/base"; fi
  rm -rf "$work"
}
trap finish EXIT

build() { # the tests of the tree $1, as $2-<number>.test
  for i in "${!packages[@]}"; do
    (cd "$1" && "$GO" test -c -o "$work/$2-$i.test" "./${packages[$i]}")
  done
}

round() { # of the tree $1, into $2.txt
  for i in "${!packages[@]}"; do
    (cd "$1/${packages[$i]}" && "$work/$2-$i.test" -test.run '^$' -test.bench "$BENCH" -test.benchtime "$BENCHTIME") >>"$work/$2.txt"
  done
}

build . head
if [ -n "$BASE" ]; then
  git worktree add --quiet --detach "$work/base" "$BASE"
  for i in "${!packages[@]}"; do
    for file in "${packages[$i]}"/*_bench_test.go; do
      if [ ! -e "$work/base/$file" ]; then cp "$file" "$work/base/$file"; fi
    done
  done
  build "$work/base" base
fi
for ((n = 1; n <= COUNT; n++)); do
  echo "bench-go: round $n of $COUNT" >&2
  if [ -n "$BASE" ]; then round "$work/base" base; fi
  round . head
done
results=("head=$work/head.txt")
if [ -n "$BASE" ]; then results=("base=$work/base.txt" "${results[@]}"); fi
"$GO" run "$BENCHSTAT" "${results[@]}"
