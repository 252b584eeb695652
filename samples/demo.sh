#!/bin/sh
# Run dl-plan, a dry run of dl-apply and dl-sim on a recording of real trainings, without Docker.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
recording=$here/digits/recording.parquet

say() { printf '\n%s\n' "$*"; }

say "Four real trainings on two CPUs, recorded by dl-probe. What FlowCon decides at the end, and why:"
say "\$ dl-plan --policy flowcon --realize quota --set itval=6 --format table samples/digits/recording.parquet"
dl-plan --policy flowcon --realize quota --set itval=6 --format table "$recording"

say "What dl-apply would do about it:"
say "\$ dl-plan --policy flowcon --realize quota --set itval=6 samples/digits/recording.parquet | dl-apply --dry-run --offline"
dl-plan --policy flowcon --realize quota --set itval=6 "$recording" | dl-apply --dry-run --offline --format table

jobs=$here/live/three.toml
say "Three trainings of two threads on two CPUs, simulated (samples/live/RESULTS.md has them on real containers):"
say "\$ dl-sim -p noop -p flowcon -p srtf --spin 0.9 samples/live/three.toml"
dl-sim -p noop -p flowcon -p srtf --spin 0.9 --format table "$jobs"

say "The same as a picture:"
say "\$ dl-sim -p noop -p flowcon -p srtf --spin 0.9 --jobs samples/live/three.toml | dl-report --plot gantt -o demo.png"
dl-sim -p noop -p flowcon -p srtf --spin 0.9 --jobs "$jobs" | dl-report --plot gantt -o demo.png
echo "demo.png"

say "On a Docker host, the same on live containers:  dl-probe | dl-plan"
