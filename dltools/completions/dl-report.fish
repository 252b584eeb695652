# fish completion for dl-report; make docs writes its generated parts

# generated: options
complete -c dl-report -l baseline -x -d 'Baseline run for the ratios'
complete -c dl-report -l jobs -d 'Print one row per job (the default for a single run)'
complete -c dl-report -l by -x -d 'Print one row per GROUP, user or job (with all its containers): CPU and GPU hours, energy, hours waited, jobs finished and failed'
complete -c dl-report -l prices -r -d 'Print what jobs or users cost'
complete -c dl-report -l plot -x -a 'gantt limits progress responses' -d 'Kind of picture: gantt, limits, progress or responses'
complete -c dl-report -s o -l output -r -d 'Write to FILE, completely or not at all'
complete -c dl-report -l format -x -a 'auto table markdown csv jsonl html svg png pdf' -d 'Output format'
complete -c dl-report -s q -l quiet -d 'Print only errors and warnings on standard error, and no remarks, such as why there was nothing to do'
complete -c dl-report -l version -d 'Print the version and exit'
complete -c dl-report -s h -l help -d 'Show this message and exit'
# end
