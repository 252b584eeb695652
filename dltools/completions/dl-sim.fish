# fish completion for dl-sim; make docs writes its generated parts

functions -q __dltools_parameters; or source (status dirname)/dl-plan.fish

# generated: options
complete -c dl-sim -s p -l policy -x -a 'flowcon tradl dqoes specon noop fair las slaq srtf' -d 'Scheduling policy'
complete -c dl-sim -l set -x -a '(__dltools_parameters noop flowcon tradl slaq las srtf)' -d 'Set a parameter of the policies that have it'
complete -c dl-sim -l clairvoyant -d 'Tell the policies how many epochs each job will train'
complete -c dl-sim -l from -r -d 'Simulate the containers of RECORDING instead of FILE: a file, a directory, or - for standard input'
complete -c dl-sim -l generate -x -a 'fixed: random: poisson: burst:' -d 'Generate N trainings instead of reading FILE'
complete -c dl-sim -l gap -x -d 'Mean time between two arrivals, for --generate'
complete -c dl-sim -l cpus -x -d 'CPUs of each host, for --generate'
complete -c dl-sim -l nodes -x -d 'Number of hosts, for --generate'
complete -c dl-sim -l seed -x -d 'First random seed'
complete -c dl-sim -l repeat -x -d 'Number of seeds to average over'
complete -c dl-sim -l spin -x -d 'How much jobs lose to contention: 0 (waiting threads sleep) to 1 (they spin)'
complete -c dl-sim -l best -x -a 'mean_completion makespan time_to_target satisfied' -d 'Compare all policies, best first by mean_completion, makespan, time_to_target or satisfied'
complete -c dl-sim -s o -l output -r -d 'Write what dl-probe would have recorded of the run of one policy'
complete -c dl-sim -s i -l interval -x -d 'Time between two samples, also in --output: how soon policies see what jobs report'
complete -c dl-sim -l jobs -d 'Print one row per job instead of one per policy'
complete -c dl-sim -l format -x -a 'auto table jsonl csv' -d 'Output format'
complete -c dl-sim -l realize -x -a 'auto quota weight priority rotate' -d 'How allocations become settings: auto, quota, weight, priority or rotate'
complete -c dl-sim -l quantum -x -d 'Mean length of a turn, with --realize rotate'
complete -c dl-sim -s q -l quiet -d 'Print only errors and warnings on standard error, and no remarks, such as why there was nothing to do'
complete -c dl-sim -l version -d 'Print the version and exit'
complete -c dl-sim -s h -l help -d 'Show this message and exit'
# end
