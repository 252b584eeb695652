#!/bin/bash
# The contract of tests/contract on cgroups of version 2: run in the emulated machine by contract-v2.sh, with the
# folders checkout and site-of-tests. The file engines says over what, the file arguments which tests.
set -u
export HOME=/root
mapfile -t arguments <arguments
engines=$(cat engines)
# Logs of jobs, state directories: in memory, since the disk is emulated too.
mount -t tmpfs tmpfs /tmp
site=$PWD/site-of-tests
cp -r checkout /tmp/checkout
cd /tmp/checkout || exit 1
PYTHONPATH=$site:$PWD DLTOOLS_CONTRACT=$engines DLTOOLS_PATIENCE=10 exec python3 -u -m pytest -p no:cacheprovider \
    --ignore tests/contract/test_kubernetes.py --ignore tests/contract/test_kubelet.py -v --tb=short --no-header "${arguments[@]}"
