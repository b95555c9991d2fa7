#!/bin/sh
# TaskProlog= of slurm.conf: programs of a job that use the SDK join the run that prolog.sh began on its nodes. What
# is printed as `export NAME=VALUE` becomes part of their environment.
echo "export RUNVITALS_RUN_ID=slurm-${SLURM_CLUSTER_NAME:-cluster}-$SLURM_JOB_ID"
