#!/bin/sh
# A comparison on Slurm without anything else: an array job, a task a cell, and a job that puts them together when all are over.
#
#   querent compare syn1 splice --seeds 0,1,2 --list --out cmp     plans the cells
#   sh examples/compare/slurm.sh cmp [options of sbatch, such as --partition=short --time=02:00:00]
#
# Submitted again, it only does what is not done. QUERENT names another program than `querent`.
set -eu

out=${1:?the folder of a comparison that `querent compare TABLES --list --out FOLDER` has planned}
shift
querent=${QUERENT:-querent}

# The first line is the table's head.
cells=$("$querent" compare --out "$out" --list | tail -n +2 | wc -l)
array=$(sbatch --parsable --job-name=querent-cells --array="0-$((cells - 1))" --cpus-per-task=1 --mem=4G \
    --output="$out/slurm-%a.log" "$@" \
    --wrap "RAYON_NUM_THREADS=1 '$querent' --quiet compare --out '$out' --cell \$SLURM_ARRAY_TASK_ID")
# Also if some have failed: they are named in what comes of it.
sbatch --parsable --job-name=querent-collect --dependency="afterany:$array" --output="$out/slurm-collect.log" "$@" \
    --wrap "'$querent' compare --out '$out' --collect"
