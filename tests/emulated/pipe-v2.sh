#!/bin/bash
# Run the whole pipe in an emulated machine with systemd and cgroup v2, and hold dl-probe against
# the engine's stats there: make test-v2. Needs root, debootstrap and qemu-system-x86 for the first
# run, which builds the machine (a minute); about ten minutes on two cores.
#
#   pipe-v2.sh [WORKDIR]    where the machine is kept; default ${TMPDIR:-/tmp}/dltools-v2
set -euo pipefail
cd "$(dirname "$0")"
work=${1:-${TMPDIR:-/tmp}/dltools-v2}
./install-site.sh "$work/site"
./boot-v2.sh -w "$work/machine" -o "$work/out-$$" -t 1800 \
    payload-pipe.sh compare.py ../../dltools "$work/site"
