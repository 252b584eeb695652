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

say "An hour of 60 trainings on two CPUs, simulated under three policies:"
say "\$ dl-sim --generate poisson:60 --gap 60s -p noop -p flowcon -p srtf"
dl-sim --generate poisson:60 --gap 60s -p noop -p flowcon -p srtf --format table

say "The same as a picture:"
say "\$ dl-sim --generate poisson:60 --gap 60s -p noop -p flowcon -p srtf --jobs | dl-report --plot compare --plot cdf -o demo.png"
dl-sim --generate poisson:60 --gap 60s -p noop -p flowcon -p srtf --jobs | dl-report --plot compare --plot cdf -o demo.png
echo "demo.png"

say "On a Docker host, the same on live containers:  dl-probe | dl-plan --policy flowcon | dl-apply"
