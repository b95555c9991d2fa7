#!/bin/sh
# Epilog= of slurm.conf: ends what prolog.sh began.
file=${RUNVITALS_PROLOG_FOLDER:-/run/runvitals}/$SLURM_JOB_ID.pid
[ -r "$file" ] || exit 0
kill -s TERM -- "-$(cat "$file")"
rm -f "$file"
exit 0
