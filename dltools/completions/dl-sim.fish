# fish completion for dl-sim

functions -q __dltools_parameters; or source (status dirname)/dl-plan.fish

# generated: options
complete -c dl-sim -s p -l policy -x -a 'flowcon tradl dqoes specon noop fair las slaq srtf' -d 'Who decides'
complete -c dl-sim -l set -x -a '(__dltools_parameters flowcon tradl slaq las srtf)' -d 'Set a parameter of those policies that have it'
complete -c dl-sim -l realize -x -a 'auto quota weight priority rotate cores' -d 'How a share becomes a setting: auto, quota, weight, priority, rotate or cores'
complete -c dl-sim -l clairvoyant -d 'Let policies know how many epochs a job will train'
complete -c dl-sim -l from -r -d 'Instead of a file: run a recording\'s containers again'
complete -c dl-sim -l trace -x -a 'gavel: pollux: philly: alibaba:' -d 'Instead of a file: a cluster trace, gavel, pollux, philly or alibaba'
complete -c dl-sim -l throughputs -r -d 'With --trace gavel: the table of throughputs, JSON'
complete -c dl-sim -l hosts -r -d 'With --trace or --generate: the machines, an Alibaba node list'
complete -c dl-sim -l generate -x -a 'fixed: random: poisson: burst:' -d 'Instead of a file: N trainings that arrive fixed, random, poisson or burst'
complete -c dl-sim -l gap -x -d 'With --generate or run times of philly: mean time between two arrivals'
complete -c dl-sim -l cpus -x -d 'With --generate or --trace: CPUs of a node'
complete -c dl-sim -l nodes -x -d 'With --generate or --trace: nodes'
complete -c dl-sim -l seed -x -d 'The first seed'
complete -c dl-sim -l repeat -x -d 'How many seeds to average over'
complete -c dl-sim -l spin -x -d 'How much threads lose by waiting for each other: 0, they sleep, to 1, they spin'
complete -c dl-sim -l best -x -a 'mean_completion makespan time_to_target satisfied' -d 'Try all policies and settings, and rank them by mean_completion, makespan, time_to_target or satisfied'
complete -c dl-sim -s o -l output -r -d 'Write what dl-probe would have recorded of one policy\'s run, in the format that FILE\'s name ends in, else Parquet'
complete -c dl-sim -s i -l interval -x -d 'With --output: time between two samples'
complete -c dl-sim -l jobs -d 'Print a row per job instead of one per policy'
complete -c dl-sim -l format -x -a 'auto table jsonl csv' -d 'auto: a table on a terminal, else JSON Lines'
complete -c dl-sim -l version -d 'Print the version and exit'
complete -c dl-sim -s h -l help -d 'Show this message and exit'
# end
