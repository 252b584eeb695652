#!/bin/sh
# Show the main case without Docker: three trainings under Docker alone and under the default, and why.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
jobs=$here/live/three.toml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
seen=$scratch/three.jsonl

say() { printf '\n%s\n' "$*"; }

say "Three trainings of two threads each on two CPUs, simulated: under Docker alone (noop), and under the default:"
say "\$ dl-sim -p noop -p flowcon samples/live/three.toml"
dl-sim -p noop -p flowcon --format table "$jobs"

say "Why? Docker runs all three at once, and their threads wait for each other. What dl-plan sees of them after 76 s:"
say "\$ dl-sim -p noop samples/live/three.toml -o three.jsonl; head -n 160 three.jsonl | dl-plan"
dl-sim -p noop "$jobs" -o "$seen" > "$scratch/rows"
head -n 160 "$seen" > "$scratch/begun.jsonl"
dl-plan --format table "$scratch/begun.jsonl"

say "What dl-apply would do about it:"
say "\$ head -n 160 three.jsonl | dl-plan | dl-apply --dry-run --offline"
dl-plan "$scratch/begun.jsonl" | dl-apply --dry-run --offline --format table

say "The three as a picture:"
say "\$ dl-sim -p noop -p flowcon --jobs samples/live/three.toml | dl-report --plot gantt -o demo.png"
dl-sim -p noop -p flowcon --jobs "$jobs" | dl-report --plot gantt -o demo.png
echo "demo.png"

say "Where the policy's order wins nothing, it says so, and names one that would win: four real trainings of one thread, recorded by dl-probe:"
say "\$ dl-plan samples/digits/recording.parquet"
dl-plan --format table "$here/digits/recording.parquet"

say "On a Docker host, the same on live containers:  dl-probe | dl-plan"
